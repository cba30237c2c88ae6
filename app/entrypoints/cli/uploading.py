"""A file brought in here and now: stored, then read by this process, or by the worker that has taken it already."""

import asyncio
from collections.abc import Callable

from app.db.session import Transaction
from app.domain.principal import Principal
from app.entrypoints.cli.kit import Errand
from app.entrypoints.services import Services
from app.ingest import jobs, store
from app.ingest.jobs import JobCard
from app.ingest.store import Receipt, Upload

LOOK_SECONDS = 0.5
UNFINISHED = ("queued", "running")
Progress = Callable[[float], None]


async def bring_in(errand: Errand, collection: str, upload: Upload, progress: Progress) -> tuple[Receipt, JobCard]:
    """Store `upload` and see its job to the end. `progress` hears shares of the work, 0..1. Raises as `store`."""
    services, by = errand.services, errand.caller

    async def stored(transaction: Transaction) -> Receipt:
        return await store.store(
            transaction, services.authority, services.printer, by, collection, upload, size_max=services.upload_max
        )

    receipt = await errand.change(stored, collection)
    return receipt, await _ended(services, by, receipt, progress)


async def _ended(services: Services, by: Principal, receipt: Receipt, progress: Progress) -> JobCard:
    """The job when it is over. One whose worker died is taken over as soon as its lease has run out."""
    while True:
        working = asyncio.ensure_future(services.worker.run_one(receipt.job_id))
        while not (await asyncio.wait({working}, timeout=LOOK_SECONDS))[0]:
            progress((await _job(services, by, receipt)).progress)
        taken = await working
        job = await _job(services, by, receipt)
        progress(job.progress)
        if job.status not in UNFINISHED:
            return job
        if not taken:
            await asyncio.sleep(LOOK_SECONDS)


async def _job(services: Services, by: Principal, receipt: Receipt) -> JobCard:
    return await services.database.read(lambda snapshot: jobs.shown(snapshot, services.printer, by, receipt.job_id))
