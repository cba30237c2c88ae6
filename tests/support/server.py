"""A real server: `python -m app demo` or `serve` as a process of its own, with a data directory of its own."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

import httpx
import psycopg

from app.db.embedded import SUPERUSER, EmbeddedCluster
from app.db.secrets import secret
from support.waiting import until

ROOT = Path(__file__).parents[2]
START_SECONDS = 180
STOP_SECONDS = 30


class ServerProcess:
    """A context: the server is ready when it begins; when it ends nothing of it is left, or an AssertionError says so.

    `data_dir` must lie where the account of the embedded Postgres can walk: below the fixture `run_dir`. What the
    server wrote to stdout and stderr is in `data_dir` with the suffix `.log`.
    """

    def __init__(
        self, data_dir: Path, model_dir: Path, command: str = "demo", environment: Mapping[str, str] | None = None
    ) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.log = data_dir.with_suffix(".log")
        self._command = [sys.executable, "-m", "app", command]
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("STACKS_")},
            "STACKS_DATA_DIR": str(data_dir),
            "STACKS_PORT": str(self.port),
            "STACKS_MODEL_DIR": str(model_dir),
            **(environment or {}),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def mcp_url(self) -> str:
        """Where it speaks MCP."""
        return f"{self.url}/mcp"

    @property
    def pid(self) -> int:
        """The process that was started (a server with several workers has more)."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def tokens(self) -> dict[str, str]:
        """The demo's principals, and the token of each."""
        credentials = json.loads((self.data_dir / "demo" / "credentials.json").read_text())
        return {name: one["token"] for name, one in credentials["principals"].items()}

    @contextmanager
    def superuser(self) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
        """A connection to its embedded Postgres that row-level security does not bind, to look behind the scenes."""
        with EmbeddedCluster(self.data_dir, shared_buffers="256MB") as address:
            url = address.url(SUPERUSER, secret(self.data_dir, "superuser")).replace("+psycopg", "")
            with psycopg.connect(url, autocommit=True) as connection:
                yield connection

    def __enter__(self) -> "ServerProcess":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it is ready. AssertionError, with what it said, when it ends instead."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            until(self._ready, f"{self.url}/health/ready", START_SECONDS)
        except AssertionError:
            self.stop()
            raise

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the server ended: {self.log.read_text()[-3000:]}"
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/health/ready", timeout=10).status_code == 200
        return False

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Ask it to end, as Ctrl-C does; AssertionError when it does not, or leaves a process behind."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._end_all()
            raise AssertionError(f"the server did not end: {self.log.read_text()[-3000:]}") from None
        with suppress(AssertionError):  # those that end with it may need a moment to notice
            until(lambda: not self.processes(), "the end of every process", STOP_SECONDS)
        left = self.processes()
        self._end_all()
        assert left == {}, f"left behind: {left}"

    def processes(self) -> dict[int, str]:
        """Every process that belongs to this server, by number: what it was started as."""
        marks = (f"STACKS_DATA_DIR={self.data_dir}\0".encode(), os.fsencode(self.data_dir))
        return {pid: line for pid in _numbers() if (line := _command_if_marked(pid, *marks)) is not None}

    def _end_all(self) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                os.kill(pid, signal.SIGKILL)
                select.select([handle], [], [], STOP_SECONDS)
                os.close(handle)


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _numbers() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if int(entry.name) != os.getpid()]


def _command_if_marked(pid: int, setting: bytes, directory: bytes) -> str | None:
    """The command line of a process started with `setting`, or one that works in or names `directory`."""
    entry = Path("/proc") / str(pid)
    with suppress(OSError):
        command = (entry / "cmdline").read_bytes()
        state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        works_in = os.fsencode((entry / "cwd").readlink())
        ours = setting in (entry / "environ").read_bytes() or works_in.startswith(directory) or directory in command
        if state != "Z" and ours:
            return command.replace(b"\0", b" ").decode(errors="replace").strip()
    return None
