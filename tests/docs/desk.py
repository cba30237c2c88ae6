"""Where the blocks of the documentation run: a copy of the checkout, in which the demo has been started."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from docs.blocks import PARSED, RUN, Block
from docs.commands import ROOT, console, printed, script
from docs.shapes import differences
from support.server import ServerProcess

SECONDS = 180
LEFT_OUT = (".*", "build", "dist", "__pycache__", "acceptance-report", "node_modules")
PARSERS: dict[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
# Each shell block is a bash of its own; what it exports is there in the next one of its page.
PRELUDE = "set -euo pipefail\ntrap 'env -0 >\"$DOCS_ENVIRONMENT\"' EXIT\n"


def copy_checkout(place: Path) -> None:
    """Copy what `make demo` needs, with this run's Python as `.venv`."""
    shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (place / ".venv").symlink_to(sys.prefix)
    place.chmod(0o711)


def llamaindex_python(cache: Path) -> Path:
    """A Python with LlamaIndex, which pins what we do not; made once for each state of its lock file."""
    lock = Path(__file__).with_name("llamaindex.lock")
    place = cache / f"llamaindex-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    python, ready = place / "bin" / "python", place / ".ready"
    if not ready.exists():
        for old in cache.glob("llamaindex-*"):
            shutil.rmtree(old)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock], check=True)
        ready.touch()
    return python


class Desk:
    """One page's reader: carries out block after block, and remembers what was exported and printed last."""

    def __init__(self, server: ServerProcess, path: str, cache: Path) -> None:
        self._server = server
        self._place = server.data_dir.parent
        self._cache = cache
        self._environment = {
            **{name: value for name, value in server.environment.items() if name != "STACKS_DATA_DIR"},
            "PATH": path,
            "DOCS_ENVIRONMENT": str(self._place / ".environment"),
        }
        self._printed: str | None = None

    def follow(self, block: Block) -> None:
        """Do what `block` says. AssertionError when that does not work, or is not what happens."""
        if block.language in RUN:
            self._printed = self._run(block)
        elif block.language in PARSED:
            sample = PARSERS[block.language](block.text)
            if "output" in block.options:
                assert self._printed is not None, f"{block.place}: no block before it printed anything"
                found = list(differences(sample, json.loads(self._printed)))
                assert found == [], f"{block.place}: {found}\n{self._printed}"

    def _run(self, block: Block) -> str:
        text = block.text.replace("127.0.0.1:8700", f"127.0.0.1:{self._server.port}")
        expected: list[str] = []
        if block.language == "console":
            text, expected = console(text)
        command = self._python(block, text) if block.language == "python" else ["bash", "-c", PRELUDE + script(text)]
        code, out, err = self._carry_out(command)
        self._remember()
        said = f"{block.place}: ended with {code}\n{out}\n{err}"
        assert code == int(block.options.get("exit", "0")), said
        assert [line for line in expected if not printed(line, out + err)] == [], said
        return out

    def _carry_out(self, command: list[str]) -> tuple[int, str, str]:
        """Run a program; its exit code and output. What it started does not outlive it."""
        with subprocess.Popen(
            command,
            cwd=self._place,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, out, err

    def _python(self, block: Block, text: str) -> list[str]:
        if "llamaindex" in block.options:
            return [str(llamaindex_python(self._cache)), "-I", "-c", text]
        return [sys.executable, "-c", text]

    def _remember(self) -> None:
        left = Path(self._environment["DOCS_ENVIRONMENT"])
        if left.exists():
            self._environment = dict(one.split("=", 1) for one in left.read_text().split("\0") if one)
            left.unlink()
