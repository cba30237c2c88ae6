"""`stacks status`: whether the parts answer and are what this code expects, and what there is to do."""

from dataclasses import dataclass

import typer

from app.db import migrate, state
from app.db.session import Transaction
from app.entrypoints.cli.collecting import all_collections
from app.entrypoints.cli.kit import Errand, Json, run
from app.entrypoints.cli.output import OTHER, as_text, show
from app.errors import StacksError
from app.ingest import jobs
from app.ingest.jobs import JobCounts
from app.ingest.ocr import tesseract


@dataclass(frozen=True, slots=True)
class Checks:
    """What was found of each part."""

    database: str
    extension: str
    migrations: str
    model: str
    recognition: str


@dataclass(frozen=True, slots=True)
class Status:
    """`status` is ok, or `behind` when the schema is not the one this code was written for.

    Jobs are those of the collections that the caller may ingest into, counted where the schema is the right one;
    `collections` are written as editions.
    """

    status: str
    version: str
    url: str
    checks: Checks
    jobs: JobCounts | None
    collections: list[str]


def status(context: typer.Context, as_json: Json = False) -> None:
    """Tell whether the parts answer, and what there is to do; exit code 5 when the database is away."""
    try:
        found = run(context, _found)
    except StacksError as error:
        if as_json:
            typer.echo(as_text({"status": error.code, "message": error.message}))
        raise
    if as_json:
        show(found, as_json=True)
    else:
        _tell(found)
    if found.status != "ok":
        raise SystemExit(OTHER)


async def _found(errand: Errand) -> Status:
    errand.services.worker.embedder.prepare()  # raises what stands in its way; may take longer than a reading may
    return await errand.read(lambda snapshot: _look(snapshot, errand))


async def _look(snapshot: Transaction, errand: Errand) -> Status:
    services = errand.services
    database, newest = await state.read(snapshot), migrate.head()
    current = database.revision == newest
    checks = Checks(
        database=f"Postgres {database.postgres}",
        extension=f"vector {database.vector}",
        migrations=f"{newest}, the newest" if current else f"{database.revision} of {newest}; run: stacks migrate",
        model=f"{services.worker.embedder.name}, revision {services.worker.embedder.revision}",
        recognition=", ".join(("RapidOCR", *(f"Tesseract {name}" for name in sorted(tesseract.languages())))),
    )
    return Status(
        status="ok" if current else "behind",
        version=services.version,
        url=services.base_url,
        checks=checks,
        jobs=await jobs.counts(snapshot, services.authority, errand.caller) if current else None,
        collections=[card.corpus_version for card in await all_collections(snapshot, errand)],
    )


def _tell(found: Status) -> None:
    lines = {
        "status": found.status,
        "version": found.version,
        "url": found.url,
        "database": found.checks.database,
        "extension": found.checks.extension,
        "migrations": found.checks.migrations,
        "model": found.checks.model,
        "recognition": found.checks.recognition,
        "jobs": _jobs(found.jobs),
        "collections": found.collections,
    }
    show(lines, as_json=False)


def _jobs(found: JobCounts | None) -> str:
    """The counts, each with what it means for whoever has to do something about it."""
    if found is None:
        return "not counted before the migration"
    queued = f"{found.queued} waiting"
    if found.retrying:
        queued += f" ({found.retrying} of them to be tried again)"
    if found.queued and not found.workers:
        queued += " for a worker: none is alive; run: stacks worker"
    running = f"{found.running} running"
    if found.stalled:
        running += f" ({found.stalled} of them not heard of: the next worker that is free takes them over)"
    failed = f"{found.failed} failed" + ("; see: stacks job list COLLECTION --status failed" if found.failed else "")
    return f"{queued}, {running}, {failed}"
