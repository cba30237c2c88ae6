"""The queue of jobs: taken under a lease, so that a worker that dies gives its job back by doing nothing."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import NotFound
from app.ingest.requester import from_json

LEASE_SECONDS = 20
ATTEMPTS_MAX = 3

_TAKE = text("""
    UPDATE jobs SET status = 'running', attempts = attempts + 1,
                    leased_until = now() + make_interval(secs => :lease)
    WHERE id = (
        SELECT id FROM jobs
        WHERE (status = 'queued' OR (status = 'running' AND leased_until < now()))
          AND (CAST(:only AS uuid) IS NULL OR id = :only)
        ORDER BY created_at, id FOR UPDATE SKIP LOCKED LIMIT 1)
    RETURNING id, document_id, version, CAST(requested_by AS text) AS requested_by, attempts
""")
_RENEW = text("""
    UPDATE jobs SET leased_until = now() + make_interval(secs => :lease), progress = greatest(progress, :progress)
    WHERE id = :id AND status = 'running' AND attempts = :attempts
""")
_END = text("""
    UPDATE jobs SET status = :status, progress = CASE WHEN :status = 'done' THEN 1 ELSE progress END,
                    code = :code, message = :message, finished_at = now(), leased_until = NULL
    WHERE id = :id AND status = 'running' AND attempts = :attempts
""")
# A job is seen by who may see its document for that action: the ticket in the transaction decides.
_SHOW = text("""
    SELECT j.id, j.status, j.progress, j.document_id, j.code, j.message, j.created_at, j.finished_at
    FROM jobs j JOIN documents d ON d.id = j.document_id WHERE j.id = :id
""")
_COUNTS = text("""
    SELECT count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status = 'running') AS running,
           count(*) FILTER (WHERE status = 'failed') AS failed
    FROM jobs WHERE collection_id = ANY(:collections)
""")
_WAITING = text("SELECT count(*) FROM jobs WHERE collection_id = :collection AND status IN ('queued', 'running')")


@dataclass(frozen=True, slots=True)
class Lease:
    """A job in hand. Only while `attempts` is still ours may it be renewed or ended."""

    id: UUID
    document_id: UUID
    version: int
    principal: Principal = field(repr=False)
    attempts: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JobCard:
    """A job as it is shown."""

    id: UUID
    status: str
    progress: float
    document_id: UUID
    code: str | None
    message: str | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs wait, are in hand, and have failed."""

    queued: int
    running: int
    failed: int


async def counts(transaction: Transaction, authority: Authority, by: Principal) -> JobCounts:
    """The jobs of the collections that `by` may ingest into, counted."""
    scope = await authority.compile(transaction, by, Action.INGEST)
    values = {"collections": [part.id for part in scope.collections.values()]}
    return JobCounts(*(await transaction.connection.execute(_COUNTS, values)).one())


async def take(transaction: Transaction, only: UUID | None = None, seconds: float = LEASE_SECONDS) -> Lease | None:
    """Lease the oldest job that waits or whose worker is gone, or `only` that one; None when there is none.

    A worker that gives no sign of life for `seconds` is taken for gone.
    """
    row = (await transaction.connection.execute(_TAKE, {"lease": seconds, "only": only})).one_or_none()
    if row is None:
        return None
    return Lease(row.id, row.document_id, row.version, from_json(row.requested_by), row.attempts, seconds)


async def renew(transaction: Transaction, lease: Lease, progress: float) -> bool:
    """Keep a job for another lease and note its progress (0..1); False when another worker has it by now."""
    values = {"id": lease.id, "attempts": lease.attempts, "lease": lease.seconds, "progress": progress}
    return (await transaction.connection.execute(_RENEW, values)).rowcount == 1


async def end(
    transaction: Transaction, lease: Lease, status: str, code: str | None = None, message: str | None = None
) -> bool:
    """Write down how a job ended; False when it was no longer ours to end."""
    values = {"id": lease.id, "attempts": lease.attempts, "status": status, "code": code, "message": message}
    return (await transaction.connection.execute(_END, values)).rowcount == 1


async def shown(transaction: Transaction, printer: TicketPrinter, by: Principal, id_: UUID) -> JobCard:
    """One job. Raises `NotFound` unless `by` may ingest, or search, its document."""
    for action in (Action.INGEST, Action.SEARCH):
        await printer.present(transaction, by, action)
        row = (await transaction.connection.execute(_SHOW, {"id": id_})).one_or_none()
        if row is not None:
            return JobCard(*row)
    raise NotFound


async def waiting(transaction: Transaction, collection: UUID) -> int:
    """How many jobs of a collection are not finished."""
    return int((await transaction.connection.execute(_WAITING, {"collection": collection})).scalar_one())
