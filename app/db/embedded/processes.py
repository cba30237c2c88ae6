"""What the kernel says about the server's processes; process numbers in files are only hints."""

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def alive(pid: int) -> bool:
    """Whether a process with this number still does anything; one that is dead and not yet collected does not."""
    # If the server fell to us because we are the container's first process, collecting it is our duty.
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def works_in(pid: int, directory: Path) -> bool | None:
    """Whether the process has `directory` as its working directory, as every process of a server has its cluster's.

    None where that cannot be known: no /proc, or not allowed to look.
    """
    try:
        return (_PROC / str(pid) / "cwd").readlink() == directory
    except FileNotFoundError:
        return False if _PROC.exists() else None
    except OSError:
        return None


def servers_in(directory: Path) -> list[int]:
    """Every postgres process that works in `directory`, as far as we may look."""
    found = []
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            program = (entry / "exe").readlink().name.removesuffix(" (deleted)")
            if program == "postgres" and (entry / "cwd").readlink() == directory:
                found.append(int(entry.name))
    return found
