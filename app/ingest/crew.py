"""A worker's life: it enlists, says that it lives, takes jobs until it is told to stop, and leaves none behind."""

import asyncio
from contextlib import suppress
from functools import partial

import structlog

from app.db.session import Database
from app.errors import StacksError
from app.ingest import delivery
from app.ingest.worker import Worker

log = structlog.get_logger()

IDLE_SECONDS = 0.5
REPORT_SECONDS = 5.0


async def work(worker: Worker, stop: asyncio.Event) -> None:
    """Take jobs until `stop` is set; one that is in hand then is given back. While the database is away, wait."""
    number = await _enlisted(worker.database, stop)
    if number is None:
        return
    reporting = asyncio.ensure_future(_report(worker.database, number, stop))
    try:
        while not stop.is_set():
            if not await _one(worker, number, stop):
                await _pause(stop, IDLE_SECONDS)
    finally:
        reporting.cancel()
        with suppress(StacksError):
            await worker.database.write(partial(delivery.dismiss, worker=number))


async def _enlisted(database: Database, stop: asyncio.Event) -> int | None:
    while not stop.is_set():
        try:
            return await database.write(delivery.enlist)
        except StacksError as fault:
            log.warning("worker waits", code=fault.code)
            await _pause(stop, IDLE_SECONDS)
    return None


async def _report(database: Database, number: int, stop: asyncio.Event) -> None:
    while not stop.is_set():
        with suppress(StacksError):
            await database.write(partial(delivery.report, worker=number))
        await _pause(stop, REPORT_SECONDS)


async def _one(worker: Worker, number: int, stop: asyncio.Event) -> bool:
    """Whether there was a job to do."""
    job, stopping = asyncio.ensure_future(worker.run_one(worker=number)), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({job, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if job.done():
            return job.result()
    except StacksError as fault:
        log.warning("worker waits", code=fault.code)
    finally:
        stopping.cancel()
        if job.cancel():
            await asyncio.wait({job})
    return False


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
