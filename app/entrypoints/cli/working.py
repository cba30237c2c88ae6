"""Commands on jobs: job list, show, cancel, retry."""

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

import typer

from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.principal import Principal
from app.entrypoints.cli.collecting import Slug
from app.entrypoints.cli.kit import PAGE, Errand, Json, everything, run
from app.entrypoints.cli.output import show
from app.errors import InvalidRequest
from app.ingest import jobs
from app.ingest.jobs import NEWEST, STATUSES, JobCard, ListedJob, Place

Id = Annotated[UUID, typer.Argument(help="As `job list` and `document add --json` show it.", metavar="JOB_ID")]
COLUMNS = ("id", "file_name", "version", "status", "progress", "attempts", "code", "message")


def listed(
    context: typer.Context,
    slug: Slug,
    status: Annotated[str | None, typer.Option(help=f"Only these: {', '.join(STATUSES)}.")] = None,
    as_json: Json = False,
) -> None:
    """The jobs of a collection that you may ingest into, newest first, with what stood in the way of each."""
    if status not in (None, *STATUSES):
        raise InvalidRequest("--status", "no status of a job", allowed=", ".join(STATUSES))

    async def read(snapshot: Transaction, errand: Errand) -> list[ListedJob]:
        services, by = errand.services, errand.caller
        return await everything(
            lambda before: jobs.listed(
                snapshot, services.authority, services.printer, by, slug, status=status, before=before, limit=PAGE
            ),
            lambda card: Place(card.created_at, card.id),
            NEWEST,
        )

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand), slug))
    show(found, as_json=as_json, columns=COLUMNS)


def shown(context: typer.Context, job_id: Id, as_json: Json = False) -> None:
    """One job: how far it is, and what became of it."""
    found = run(
        context,
        lambda errand: errand.read(
            lambda snapshot: jobs.shown(snapshot, errand.services.printer, errand.caller, job_id)
        ),
    )
    show(found, as_json=as_json)


def cancel(context: typer.Context, job_id: Id, as_json: Json = False) -> None:
    """End a job that waits or runs. Its file stays, so that it can be tried again."""
    _change(context, jobs.cancel, job_id, as_json=as_json)


def retry(context: typer.Context, job_id: Id, as_json: Json = False) -> None:
    """Queue a job again that failed or was cancelled; a worker takes it from there, under your rights."""
    _change(context, jobs.retry, job_id, as_json=as_json)


Change = Callable[[Transaction, TicketPrinter, Principal, UUID], Awaitable[JobCard]]


def _change(context: typer.Context, change: Change, job_id: UUID, *, as_json: bool) -> None:
    done = run(
        context,
        lambda errand: errand.change(
            lambda transaction: change(transaction, errand.services.printer, errand.caller, job_id)
        ),
    )
    show(done, as_json=as_json)
