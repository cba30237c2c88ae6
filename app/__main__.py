"""`python -m app` is `stacks`."""

from app.bootstrap import main

if __name__ == "__main__":
    main()
