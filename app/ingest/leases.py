"""A job in a worker's hands: held under a lease, so that a worker that dies gives it back by doing nothing.

`attempts` is the fence. Each time a job is given out the number is raised, and whoever holds an earlier one can
neither renew nor end the job any more; the end is in the transaction that writes what the job was for.
"""

from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import text

from app.db.session import Transaction
from app.domain.principal import Principal
from app.errors import StacksError
from app.ingest import delivery
from app.ingest.requester import from_json

LEASE_SECONDS = 20.0
DEATHS_MAX = 3  # so that a file that kills its worker does not kill all of them for ever
TRIES_MAX = 12  # half an hour, with the pauses between

_RUN_OUT = text("""
    UPDATE jobs SET status = 'queued', leased_until = NULL, deaths = deaths + 1
    WHERE id IN (
        SELECT id FROM jobs
        WHERE status = 'running' AND leased_until < now() AND (CAST(:only AS uuid) IS NULL OR id = :only)
        ORDER BY leased_until LIMIT 8 FOR UPDATE SKIP LOCKED)
    RETURNING delivery, deaths
""")
# A card that somebody holds is about to be cancelled; to wait for it, with the delivery in hand, would be a deadlock.
_TAKE = text("""
    UPDATE jobs SET status = 'running', attempts = attempts + 1, progress = 0, code = NULL, message = NULL,
                    leased_until = now() + make_interval(secs => :lease)
    WHERE id = (SELECT id FROM jobs WHERE id = :id AND status = 'queued' FOR UPDATE SKIP LOCKED)
    RETURNING document_id, version, CAST(requested_by AS text) AS requested_by, attempts, deaths, seconds
""")
_WAITS = text("SELECT status = 'queued' FROM jobs WHERE id = :id")
_RENEW = text("""
    UPDATE jobs SET leased_until = now() + make_interval(secs => :lease), progress = greatest(progress, :progress)
    WHERE id = :id AND status = 'running' AND attempts = :attempts
""")
_END = text("""
    UPDATE jobs SET status = :status, progress = CASE WHEN :status = 'done' THEN 1 ELSE progress END,
                    code = :code, message = :message, finished_at = now(), leased_until = NULL, delivery = NULL
    WHERE id = :id AND status = 'running' AND attempts = :attempts
""")
_PUT_BACK = text("""
    UPDATE jobs SET status = 'queued', leased_until = NULL, code = :code, message = :message
    WHERE id = :id AND status = 'running' AND attempts = :attempts
""")


class Withheld(StacksError):
    """The next job is being cancelled at this moment; what was begun for it is taken back."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A job in hand. Only while `attempts` is still ours may it be renewed, put back or ended.

    `tries` and `deaths` tell how often it was put back before, and how often left behind; `expected` how many seconds
    it should take.
    """

    id: UUID
    document_id: UUID
    version: int
    principal: Principal = field(repr=False)
    attempts: int
    seconds: float
    delivery: int
    tries: int
    deaths: int
    expected: float


async def take(
    transaction: Transaction, worker: int | None = None, only: UUID | None = None, seconds: float = LEASE_SECONDS
) -> Lease | None:
    """Lease the job that is due first, or `only` that one; None when there is none to be done now.

    Jobs that have not been heard of for the length of their lease are queued again before. Raises `Withheld`.
    """
    await _take_back(transaction, only)
    brought = await delivery.receive(transaction, worker, only)
    if brought is None:
        return None
    row = (await transaction.connection.execute(_TAKE, {"id": brought.job, "lease": seconds})).one_or_none()
    if row is None:
        if (await transaction.connection.execute(_WAITS, {"id": brought.job})).scalar_one_or_none():
            raise Withheld
        await delivery.drop(transaction, brought.number)  # of a card that has ended: it must not stay in the way
        return None
    return Lease(
        brought.job,
        row.document_id,
        row.version,
        from_json(row.requested_by),
        row.attempts,
        seconds,
        brought.number,
        brought.tries,
        row.deaths,
        row.seconds,
    )


async def _take_back(transaction: Transaction, only: UUID | None) -> None:
    """At once the first time: workers are replaced for many reasons that are no fault of the file."""
    for row in await transaction.connection.execute(_RUN_OUT, {"only": only}):
        pause = 0.0 if row.deaths == 1 else delivery.backoff(row.deaths)
        await delivery.put_back(transaction, row.delivery, pause)


async def renew(transaction: Transaction, lease: Lease, progress: float) -> bool:
    """Keep a job for another lease and note its progress (0..1); False when it is not ours any more."""
    values = {**_held(lease), "lease": lease.seconds, "progress": progress}
    return (await transaction.connection.execute(_RENEW, values)).rowcount == 1


async def end(
    transaction: Transaction, lease: Lease, status: str, code: str | None = None, message: str | None = None
) -> bool:
    """Write down how a job ended; False when it was no longer ours to end."""
    values = {**_held(lease), "status": status, "code": code, "message": message}
    if (await transaction.connection.execute(_END, values)).rowcount != 1:
        return False
    await delivery.drop(transaction, lease.delivery)
    return True


async def put_back(
    transaction: Transaction, lease: Lease, pause: float = 0.0, code: str | None = None, message: str | None = None
) -> bool:
    """Give a job back, to be tried again after `pause` seconds; False when it was no longer ours to give."""
    values = {**_held(lease), "code": code, "message": message}
    if (await transaction.connection.execute(_PUT_BACK, values)).rowcount != 1:
        return False
    await delivery.put_back(transaction, lease.delivery, pause)
    return True


def _held(lease: Lease) -> dict[str, object]:
    return {"id": lease.id, "attempts": lease.attempts}
