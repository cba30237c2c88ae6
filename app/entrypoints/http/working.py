"""Jobs: how far each is, the list of a collection's, and those that are cancelled or tried again."""

from datetime import datetime
from uuid import UUID

from litestar import Controller, get, post

from app.domain.calls import Call
from app.domain.principal import Principal
from app.entrypoints.http.caller import named
from app.entrypoints.http.paging import LIMIT_DEFAULT, Page, after, limit_of, page
from app.entrypoints.services import Services
from app.errors import InvalidRequest
from app.ingest import jobs
from app.ingest.jobs import NEWEST, STATUSES, JobCard, ListedJob, Place


class JobController(Controller):
    """Jobs by id."""

    path = "/api/v1/jobs/{job_id:uuid}"

    @get()
    async def shown(self, services: Services, caller: Principal, call: Call, job_id: UUID) -> JobCard:
        """How far a job is, and what became of it."""
        return await services.calls.read(call, lambda snapshot: jobs.shown(snapshot, services.printer, caller, job_id))

    @post("/cancel", status_code=200)
    async def cancel(self, services: Services, caller: Principal, call: Call, job_id: UUID) -> JobCard:
        """End a job that waits or runs; its file stays, so that it can be tried again."""
        return await services.calls.change(
            call, lambda transaction: jobs.cancel(transaction, services.printer, caller, job_id)
        )

    @post("/retry", status_code=200)
    async def retry(self, services: Services, caller: Principal, call: Call, job_id: UUID) -> JobCard:
        """Queue a job again that failed or was cancelled; it works under the caller's rights from now on."""
        return await services.calls.change(
            call, lambda transaction: jobs.retry(transaction, services.printer, caller, job_id)
        )


@get("/api/v1/collections/{slug:str}/jobs")
async def listed(
    services: Services,
    caller: Principal,
    call: Call,
    slug: str,
    status: str | None = None,
    limit: int = LIMIT_DEFAULT,
    cursor: str | None = None,
) -> Page[ListedJob]:
    """The jobs of a collection, newest first, of one `status` or all, for who may ingest there."""
    call.collection = named(slug)
    if status not in (None, *STATUSES):
        raise InvalidRequest("status", "no status of a job", allowed=", ".join(STATUSES))
    before = after(cursor, _place, NEWEST)
    found = await services.calls.read(
        call,
        lambda snapshot: jobs.listed(
            snapshot,
            services.authority,
            services.printer,
            caller,
            slug,
            status=status,
            before=before,
            limit=limit_of(limit) + 1,
        ),
    )
    return page(found, limit, lambda card: f"{card.created_at.isoformat()} {card.id}")


def _place(cursor: str) -> Place:
    at, _, id_ = cursor.partition(" ")
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None:
        raise ValueError
    return Place(moment, UUID(id_))
