"""Makes search.svg: two people ask the running demo the same question in a terminal.

Run by hand in a checkout where `make demo` is running: .venv/bin/python docs/images/make.py
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

QUESTION = "How are the salary bands built?"
WIDTH = 108
CREDENTIALS = Path(os.environ.get("STACKS_DATA_DIR", ".data")) / "demo" / "credentials.json"


def ask(token: str, *options: str) -> str:
    """What `stacks search` prints for the holder of `token`, refusals among it."""
    stacks = shutil.which("stacks", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if stacks is None:
        sys.exit("stacks is not installed beside this Python")
    done = subprocess.run(
        [stacks, "search", QUESTION, "--limit", "1", *options],
        env={**os.environ, "STACKS_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).rstrip("\n")


def show(console: Console, who: str, token: str, *options: str) -> None:
    """One command as it was typed, and its answer."""
    asked = " ".join(["stacks search", f'"{QUESTION}"', "--limit 1", *options])
    console.print(Text(f"{who} $ ", style="bold green") + Text(asked, style="bold"), soft_wrap=False)
    for line in ask(token, *options).splitlines():
        style = "cyan" if line.startswith("   |") else "red" if line.startswith("denied") else "default"
        console.print(Text(line, style=style))
    console.print()


def main() -> None:
    """Write search.svg beside this file. It loads nothing: no font of a network's."""
    holders = json.loads(CREDENTIALS.read_text())["principals"]
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, highlight=False, markup=False, force_terminal=True)
        for who in ("general", "restricted"):
            show(console, who, holders[who]["token"])
        show(console, "general", holders["general"]["token"], "--collection", "board")
        drawn = console.export_svg(title="One question, two people", unique_id="search")
    drawn = re.sub(r"\s*@font-face \{.*?\n\s*\}", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    if "url(" in drawn.replace("url(#", ""):
        sys.exit("the drawing would load something")
    Path(__file__).with_name("search.svg").write_text(drawn)


if __name__ == "__main__":
    main()
