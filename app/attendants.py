"""What runs beside a server: ingest workers, replaced when they die, and the embedded Postgres, started again."""

import subprocess
import sys
import threading
from types import TracebackType

import structlog

from app.db.embedded import EmbeddedCluster
from app.errors import StacksError

log = structlog.get_logger()

WATCH_SECONDS = 5.0
STOP_SECONDS = 10.0


class Attendants:
    """A context: its processes run while it lasts. A worker is tethered by its standard input, so that it also ends
    when this process is killed without a chance to say so."""

    def __init__(self, ingest_workers: int, cluster: EmbeddedCluster | None) -> None:
        self._wanted = ingest_workers
        self._cluster = cluster
        self._workers: list[subprocess.Popen[bytes]] = []
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._attend, name="attendants", daemon=True)

    def __enter__(self) -> "Attendants":
        self._workers = [_worker() for _ in range(self._wanted)]
        self._watch.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._watch.join()
        for worker in self._workers:
            _end(worker)

    def _attend(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            try:
                if self._cluster is not None:
                    self._cluster.ensure_running()
            except StacksError as fault:
                log.error("the embedded Postgres does not start again", code=fault.code, message=fault.message)
            for position, worker in enumerate(self._workers):
                if worker.poll() is not None:
                    log.warning("an ingest worker ended and is replaced", exit_code=worker.returncode)
                    self._workers[position] = _worker()


def _worker() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "app", "worker", "--tethered"]
    # In a session of its own: a terminal's Ctrl-C reaches this process alone, which then unties its workers.
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def _end(worker: subprocess.Popen[bytes]) -> None:
    if worker.stdin is not None:
        worker.stdin.close()
    try:
        worker.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
