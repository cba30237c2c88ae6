"""Jobs as people see them: a card each, which outlives the job. What waits is cancelled, what failed tried again."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from sqlalchemy import Row, TextClause, text

from app.authz.check import refusal, require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import Conflict, NotFound
from app.ingest import delivery
from app.ingest.requester import as_json

AnyRow: TypeAlias = Row[*tuple[Any, ...]]

STATUSES = ("queued", "running", "done", "failed", "cancelled")
BYTES_A_SECOND = 65_536  # of a file, read and embedded; what is short of text goes faster, and is overtaken for it
EXPECTED_MAX_SECONDS = 600.0
PATIENCE_SECONDS = 900.0

# A job is seen by who may see its document for that action: the ticket in the transaction decides.
_CARD = """
    SELECT j.id, j.status, j.progress, j.document_id, j.code, j.message, j.created_at, j.finished_at {more}
    FROM jobs j JOIN documents d ON d.id = j.document_id
"""
_SHOW = text(_CARD.format(more="") + " WHERE j.id = :id")
_ROWS = text(
    _CARD.format(more=", j.version, v.file_name, j.attempts")
    + """
    JOIN document_versions v ON v.document_id = j.document_id AND v.version = j.version
    WHERE j.collection_id = :collection AND (CAST(:status AS text) IS NULL OR j.status = :status)
      AND (j.created_at, j.id) < (:at, :id) ORDER BY j.created_at DESC, j.id DESC LIMIT :limit
"""
)
_COUNTS = text("""
    SELECT count(*) FILTER (WHERE status = 'queued') AS queued,
           count(*) FILTER (WHERE status = 'queued' AND (deaths > 0 OR code IS NOT NULL)) AS retrying,
           count(*) FILTER (WHERE status = 'running') AS running,
           count(*) FILTER (WHERE status = 'running' AND leased_until < now()) AS stalled,
           count(*) FILTER (WHERE status = 'failed') AS failed
    FROM jobs WHERE collection_id = ANY(:collections)
""")
_WAITING = text("SELECT count(*) FROM jobs WHERE collection_id = :collection AND status IN ('queued', 'running')")
_AHEAD = text("""
    SELECT coalesce(sum(seconds), 0) FROM jobs
    WHERE collection_id = :collection AND status IN ('queued', 'running') AND seconds <= :seconds
""")
_INSERT = text("""
    INSERT INTO jobs (id, collection_id, document_id, version, requested_by, seconds, delivery)
    VALUES (:id, :collection, :document, :version, CAST(:by AS jsonb), :seconds, :delivery)
""")
# The card is locked before its delivery, by everybody.
_HOLD = text("""
    SELECT j.id, j.status, j.collection_id, j.document_id, j.version, j.delivery, j.seconds
    FROM jobs j JOIN documents d ON d.id = j.document_id WHERE j.id = :id FOR UPDATE OF j
""")
_CANCEL = text("""
    UPDATE jobs SET status = 'cancelled', finished_at = now(), leased_until = NULL, delivery = NULL, code = NULL,
                    message = NULL WHERE id = :id
""")
_AGAIN = text("""
    UPDATE jobs SET status = 'queued', progress = 0, deaths = 0, code = NULL, message = NULL, finished_at = NULL,
                    requested_by = CAST(:by AS jsonb), delivery = :delivery WHERE id = :id
""")
_STATE = text("UPDATE document_versions SET state = :state WHERE document_id = :document AND version = :version")
_FORGET = text("""
    DELETE FROM originals o USING document_versions v
    WHERE o.document_id = :document AND v.document_id = o.document_id AND v.version = o.version AND v.state = 'failed'
""")
_REPEATABLE = text("""
    SELECT FROM originals o JOIN documents d ON d.id = o.document_id
    WHERE o.document_id = :document AND o.version = :version AND d.removed_at IS NULL
      AND NOT EXISTS (SELECT FROM document_versions v WHERE v.document_id = :document AND v.version > :version)
""")


@dataclass(frozen=True, slots=True)
class JobCard:
    """A job as it is shown. Of one that waits to be tried again, `code` and `message` say what stood in its way."""

    id: UUID
    status: str
    progress: float
    document_id: UUID
    code: str | None
    message: str | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ListedJob(JobCard):
    """A job as it is shown to who runs the collection."""

    version: int
    file_name: str
    attempts: int


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs wait, are in hand, and have failed.

    Of those that wait, `retrying` have been tried before; of those in hand, `stalled` have not been heard of for
    longer than they should, and are about to be given to another worker. `workers` is the number that live.
    """

    queued: int
    retrying: int
    running: int
    stalled: int
    failed: int
    workers: int


class Place(NamedTuple):
    """A place in the list of jobs, newest first."""

    at: datetime
    id: UUID


NEWEST = Place(datetime(9999, 1, 1, tzinfo=UTC), UUID(int=0))


async def queue(
    transaction: Transaction, by: Principal, id_: UUID, collection: UUID, document: UUID, version: int, size: int
) -> None:
    """Queue the job `id_` of a version of `size` bytes, in the transaction that stores it."""
    seconds = min(1 + size / BYTES_A_SECOND, EXPECTED_MAX_SECONDS)
    values = {"id": id_, "collection": collection, "document": document, "version": version, "by": as_json(by)}
    number = await _send(transaction, id_, collection, seconds)
    await transaction.connection.execute(_INSERT, {**values, "seconds": seconds, "delivery": number})


async def _send(transaction: Transaction, id_: UUID, collection: UUID, seconds: float) -> int:
    """A job is due after the time it should take, and that of what waits in its collection and is no larger.

    So small uploads come before large ones, and one large load takes turns with other collections; and nothing waits
    for ever, since what comes a quarter of an hour later is due later, however small it is.
    """
    values = {"collection": collection, "seconds": seconds}
    ahead = float((await transaction.connection.execute(_AHEAD, values)).scalar_one())
    due = transaction.at + timedelta(seconds=min(ahead + seconds, PATIENCE_SECONDS))
    return await delivery.send(transaction, id_, delivery.priority(due))


async def counts(transaction: Transaction, authority: Authority, by: Principal) -> JobCounts:
    """The jobs of the collections that `by` may ingest into, counted."""
    scope = await authority.compile(transaction, by, Action.INGEST)
    values = {"collections": [part.id for part in scope.collections.values()]}
    counted = (await transaction.connection.execute(_COUNTS, values)).one()
    return JobCounts(**counted._mapping, workers=await delivery.workers(transaction))


async def shown(transaction: Transaction, printer: TicketPrinter, by: Principal, id_: UUID) -> JobCard:
    """One job. Raises `NotFound` unless `by` may ingest, or search, its document."""
    for action in (Action.INGEST, Action.SEARCH):
        row = await _one(transaction, printer, by, action, _SHOW, id_)
        if row is not None:
            return JobCard(*row)
    raise NotFound


async def listed(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    slug: str,
    *,
    status: str | None = None,
    before: Place = NEWEST,
    limit: int,
) -> list[ListedJob]:
    """The jobs of a collection on documents that `by` may ingest, newest first. Raises as `require` does."""
    collection = await require(authority, transaction, by, Action.INGEST, slug)
    await printer.present(transaction, by, Action.INGEST)
    values = {"collection": collection.id, "status": status, **before._asdict(), "limit": limit}
    return [ListedJob(*row) for row in await transaction.connection.execute(_ROWS, values)]


async def cancel(transaction: Transaction, printer: TicketPrinter, by: Principal, id_: UUID) -> JobCard:
    """End a job that waits or is in hand: its worker finds it gone at its next sign of life, and can write nothing.

    Raises `NotFound` or `Denied` unless `by` may ingest its document, `Conflict` when it has ended already.
    """
    job = await _hold(transaction, printer, by, id_)
    if job.delivery is None:
        raise Conflict("This job has ended already.")
    await transaction.connection.execute(_CANCEL, {"id": id_})
    await delivery.drop(transaction, job.delivery)
    await _set_state(transaction, job, "failed")
    return await shown(transaction, printer, by, id_)


async def retry(transaction: Transaction, printer: TicketPrinter, by: Principal, id_: UUID) -> JobCard:
    """Queue a job again that failed or was cancelled, from now on under the rights of `by`.

    Raises `NotFound` or `Denied` unless `by` may ingest its document; `Conflict` when it has not failed, or when its
    document has been removed, or uploaded anew, since.
    """
    job = await _hold(transaction, printer, by, id_)
    if job.status not in ("failed", "cancelled"):
        raise Conflict("Only a job that failed or was cancelled is tried again.")
    values = {"document": job.document_id, "version": job.version}
    if (await transaction.connection.execute(_REPEATABLE, values)).one_or_none() is None:
        raise Conflict("The document has been removed or uploaded anew since; there is nothing left to try again.")
    number = await _send(transaction, id_, job.collection_id, job.seconds)
    await transaction.connection.execute(_AGAIN, {"id": id_, "by": as_json(by), "delivery": number})
    await _set_state(transaction, job, "staged")
    return await shown(transaction, printer, by, id_)


async def forget_failed(transaction: Transaction, document: UUID) -> None:
    """Drop the originals of a document that were kept so that their jobs could be tried again; under `ingest`."""
    await transaction.connection.execute(_FORGET, {"document": document})


async def _hold(transaction: Transaction, printer: TicketPrinter, by: Principal, id_: UUID) -> AnyRow:
    row = await _one(transaction, printer, by, Action.INGEST, _HOLD, id_)
    if row is None:
        await shown(transaction, printer, by, id_)
        raise refusal(by, Action.INGEST)
    return row


async def _one(
    transaction: Transaction, printer: TicketPrinter, by: Principal, action: Action, statement: TextClause, id_: UUID
) -> AnyRow | None:
    await printer.present(transaction, by, action)
    return (await transaction.connection.execute(statement, {"id": id_})).one_or_none()


async def _set_state(transaction: Transaction, job: AnyRow, state: str) -> None:
    values = {"state": state, "document": job.document_id, "version": job.version}
    await transaction.connection.execute(_STATE, values)


async def waiting(transaction: Transaction, collection: UUID) -> int:
    """How many jobs of a collection are not finished."""
    return int((await transaction.connection.execute(_WAITING, {"collection": collection})).scalar_one())
