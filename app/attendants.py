"""What runs beside a server: ingest workers, replaced when they die; the embedded Postgres, started again; and the
erasing of what purges left on the disk, where that is quick."""

import subprocess
import sys
import threading
from types import TracebackType

import structlog

from app.db.embedded import EmbeddedCluster
from app.db.erase import erase
from app.errors import StacksError

log = structlog.get_logger()

WATCH_SECONDS = 5.0
STOP_SECONDS = 10.0
ERASE_AGAIN_SECONDS = 60.0  # while something stands in the way
ERASE_BYTES_MAX = 256 << 20  # more would keep searches waiting for more than a moment


class Attendants:
    """A context: its processes run while it lasts. A worker is tethered by its standard input, so that it also ends
    when this process is killed without a chance to say so."""

    def __init__(self, ingest_workers: int, cluster: EmbeddedCluster | None, owner_url: str) -> None:
        """Without `owner_url` nothing is erased here: an operator does it."""
        self._wanted = ingest_workers
        self._cluster = cluster
        self._owner_url = owner_url
        self._workers: list[subprocess.Popen[bytes]] = []
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._attend, name="attendants", daemon=True)

    def __enter__(self) -> "Attendants":
        self._workers = [_worker() for _ in range(self._wanted)]
        self._watch.start()
        if self._owner_url:
            # Nobody waits for it at the end: what it has not done is done after the next start.
            threading.Thread(target=self._erase, name="eraser", daemon=True).start()
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

    def _erase(self) -> None:
        """Erase what purges left, as soon as nothing stands in the way; say it once where an operator has to."""
        told, pause = False, WATCH_SECONDS
        while not self._stop.wait(pause):
            try:
                done = erase(self._owner_url, bytes_max=ERASE_BYTES_MAX)
            except StacksError:
                pause = ERASE_AGAIN_SECONDS
                continue
            pause = ERASE_AGAIN_SECONDS if done.waiting else WATCH_SECONDS
            if done.too_large and not told:
                log.warning("what was purged is not erased from the disk yet; at a quiet hour, run: stacks purge erase")
            told = done.too_large


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
