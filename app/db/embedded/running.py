"""Start and stop a server. Callers see to it that nobody else does at the same time."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.db.embedded import processes
from app.db.embedded.places import PORT
from app.db.embedded.server import Server
from app.db.embedded.settings import server_arguments
from app.errors import ConfigurationError, IndexUnavailable

_STARTING_SECONDS = 120.0
_DYING_SECONDS = 10.0
_ATTEMPTS_AFTER_CRASH = 10
_PAUSE_SECONDS = 0.5
_NOT_YET = "The embedded Postgres is still starting, perhaps recovering; try again later."
# A shell in between hands the server to the system as its parent, so that it outlives us and leaves no dead entry
# behind, and tells its number. It passes the arguments on as they are, whatever characters a path may hold.
_DETACH = '"$@" >&2 & echo $!'


def start(server: Server, shared_buffers: str) -> None:
    """Start a server that does not listen, and wait until it takes sessions.

    What a killed predecessor left behind is cleared away. Raises ConfigurationError when the server refuses to start
    and IndexUnavailable when it is not ready in two minutes, as in a long recovery; it is left to go on then.
    """
    crashed = server.pid() is not None
    _clear(server)
    # After a crash, processes that we were not allowed to see may hold on to the old memory for a moment.
    for _ in range(_ATTEMPTS_AFTER_CRASH if crashed else 1):
        pid = _launch(server, shared_buffers)
        if _comes_up(server, pid):
            return
        time.sleep(_PAUSE_SECONDS)
    raise ConfigurationError(f"The embedded Postgres does not start; the end of {server.log} says why.")


def _comes_up(server: Server, pid: int) -> bool:
    if not _within(_STARTING_SECONDS, lambda: server.ready() or not processes.alive(pid)):
        raise IndexUnavailable(_NOT_YET)
    return server.ready()


def wait(server: Server) -> None:
    """Wait until a server that listens takes sessions. Raises IndexUnavailable when it does not in two minutes."""
    if not _within(_STARTING_SECONDS, server.ready):
        raise IndexUnavailable(_NOT_YET)


def stop(server: Server) -> None:
    """Stop the server, politely first, and return when it is gone. Raises ConfigurationError when it stays."""
    pid = server.pid()
    if pid is not None and processes.works_in(pid, server.cluster) is not False:
        _wake(server, pid)
        if _ask_to_stop(server, "fast", 30) or _ask_to_stop(server, "immediate", 15):
            _within(_DYING_SECONDS, lambda: not processes.alive(pid))
        else:
            _kill(server, pid)
    if not _kill_left_behind(server) or server.listens():
        raise ConfigurationError(f"The embedded Postgres does not stop; the end of {server.log} may say why.")


def _launch(server: Server, shared_buffers: str) -> int:
    command: list[str | Path] = ["/bin/sh", "-c", _DETACH, "sh", server.binaries.program("postgres")]
    command += ["-D", server.cluster, *server_arguments(server.socket_dir, shared_buffers)]
    with server.open_log() as log:
        done = server.account.run(command, stderr=log.fileno())
    return int(done.stdout)


def _clear(server: Server) -> None:
    pid = server.pid()
    if pid is not None and processes.works_in(pid, server.cluster):
        stop(server)  # alive, but cut off: its socket was removed
    elif pid is not None and processes.alive(pid) and processes.works_in(pid, server.cluster) is False:
        # The dead server's number now belongs to some other process, usual after a container's restart. Postgres
        # would take that for a server and refuse; its own guard against survivors is kept as long as there are any.
        if _kill_left_behind(server):
            for stale in (server.cluster / "postmaster.pid", server.socket_dir / f".s.PGSQL.{PORT}.lock"):
                stale.unlink(missing_ok=True)
    else:
        _kill_left_behind(server)


def _wake(server: Server, pid: int) -> None:
    # A halted process would only hear a request to stop when somebody continues it.
    for each in {pid, *processes.servers_in(server.cluster)}:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGCONT)


def _ask_to_stop(server: Server, mode: str, seconds: int) -> bool:
    # All signals that can harm are sent as the server's own account: whatever number its files may hold, the kernel
    # lets it reach nobody else's process.
    command: list[str | Path] = [server.binaries.program("pg_ctl"), "stop", "-D", server.cluster]
    return server.account.run([*command, "-w", "-s", "-m", mode, "-t", str(seconds)]).returncode == 0


def _kill(server: Server, pid: int) -> None:
    server.account.run([server.binaries.program("pg_ctl"), "kill", "KILL", str(pid)])


def _kill_left_behind(server: Server) -> bool:
    # Sessions of a dead server can run on for minutes, unable to commit and in the way of the next. Killing them is a
    # crash like that of their server: the write-ahead log makes it good.
    def gone() -> bool:
        left = processes.servers_in(server.cluster)
        for pid in left:
            _kill(server, pid)
        return not left

    return _within(_DYING_SECONDS, gone)


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
