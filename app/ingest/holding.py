"""A worker's hold on its job: signs of life go out while it works; when the job is not its own any more, it stops."""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from app.db.session import Database
from app.errors import IndexUnavailable, StacksError, Timeout
from app.ingest import leases
from app.ingest.leases import Lease

T = TypeVar("T")

SIGNS_OF_LIFE = 4  # at least, in the time that a lease lasts
SIGN_SECONDS = 1.0  # and one a second, which is also how soon a cancelled job stops
AWAY = (IndexUnavailable, Timeout)


class LeaseLost(StacksError):
    """The job was cancelled, or another worker has it by now; what was done here is dropped."""


class Holding:
    """One job in hand. `given_up` tells work that goes on in a thread that nobody waits for it any more."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self.lease = lease
        self.given_up = threading.Event()
        self._database = database
        self._heard = time.monotonic()

    async def sign_of_life(self, progress: float) -> None:
        """Renew the lease and note the progress. Raises `LeaseLost`.

        A database that is away is borne for as long as the lease lasts, since nobody else can take the job meanwhile
        either; then raises `IndexUnavailable` or `Timeout`.
        """
        try:
            kept = await self._database.write(partial(leases.renew, lease=self.lease, progress=progress))
        except AWAY:
            if time.monotonic() - self._heard > self.lease.seconds:
                raise
            return
        if not kept:
            raise LeaseLost
        self._heard = time.monotonic()

    async def during(self, work: Callable[[], T], progress: Callable[[float], float]) -> T:
        """Do work that blocks, in a thread, and keep the job meanwhile, however long it takes.

        `progress` gives the share of the job that is done after so many seconds of this work.
        """
        task, began = asyncio.ensure_future(asyncio.to_thread(work)), time.monotonic()
        task.add_done_callback(_seen)
        pause = min(SIGN_SECONDS, self.lease.seconds / SIGNS_OF_LIFE)
        while not (await asyncio.wait({task}, timeout=pause))[0]:
            await self.sign_of_life(progress(time.monotonic() - began))
        return task.result()


def creeping(share: float, expected: float) -> Callable[[float], float]:
    """Progress of work that does not tell: towards `share`, by two thirds of the way in the time `expected`."""
    return lambda seconds: share * (1 - math.exp(-seconds / expected))


class PagesRead:
    """Progress of a parse towards `share`: by the pages read as soon as these are told, by `before` until then."""

    def __init__(self, share: float, before: Callable[[float], float]) -> None:
        self._share = share
        self._before = before
        self._told: float | None = None

    def tell(self, done: int, total: int) -> None:
        """So many pages of so many have been read."""
        self._told = self._share * min(1.0, max(0, done) / max(1, total))

    def __call__(self, seconds: float) -> float:
        return self._before(seconds) if self._told is None else self._told


def steady(share: float) -> Callable[[float], float]:
    """Progress that stays where it is."""
    return lambda _: share


def _seen(task: "asyncio.Future[T]") -> None:
    """Nobody waits for work whose job was lost: its failure is not to be told as one that was forgotten."""
    if not task.cancelled():
        task.exception()
