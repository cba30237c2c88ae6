"""Purging: one person asks, another confirms, and a version's original, text, chunks and vectors are deleted for good.

The version's row stays, with its hash and its place in the editions; so do the calls that spoke of it. What the deleted
rows leave in the files of their tables goes when those are rewritten: see `app.db.erase`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import Conflict, Denied, InternalError, InvalidRequest, NotFound
from app.ingest.turnover import hold

DEADLINE_SECONDS = 300.0
REASON_MAX = 1000

_CONFIRMER = text("SELECT purge_confirmer FROM collections WHERE id = :collection")
_VERSION = text("""
    SELECT v.state, v.published_from IS NOT NULL AND v.published_until IS NULL AS is_live
    FROM document_versions v JOIN documents d ON d.id = v.document_id
    WHERE v.document_id = :document AND v.version = :version AND d.collection_id = :collection
""")
_COLUMNS = """p.id, p.document_id, p.version, p.reason, p.status, p.requested_by, p.requested_at, p.decided_by,
    p.decided_at, p.erased_at"""
_REQUEST = text(f"""
    INSERT INTO purges AS p (collection_id, document_id, version, reason, requested_by, requesters)
    VALUES (:collection, :document, :version, :reason, :by, CAST(:requesters AS text[]))
    ON CONFLICT (document_id, version) WHERE status = 'pending' DO NOTHING RETURNING {_COLUMNS}
""")
# A purge is shown to who may purge its document: the ticket in the transaction decides.
_PAGE = text(f"""
    SELECT {_COLUMNS} FROM purges p JOIN documents d ON d.id = p.document_id
    WHERE p.collection_id = :collection AND p.id > :after ORDER BY p.id LIMIT :limit
""")
_HELD = text("""
    SELECT p.document_id, p.version, p.status, p.requesters
    FROM purges p JOIN documents d ON d.id = p.document_id
    WHERE p.collection_id = :collection AND p.id = :id FOR UPDATE OF p
""")
_WITHDRAW = text(f"""
    UPDATE purges p SET status = 'withdrawn', decided_by = :by, decided_at = now() WHERE p.id = :id RETURNING {_COLUMNS}
""")
_CONFIRM = text(f"""
    UPDATE purges p
    SET status = 'purged', decided_by = :by, decided_at = now(), deleted_in = pg_current_xact_id()
    WHERE p.id = :id RETURNING {_COLUMNS}
""")
# The title of a version was found in its text.
_MARK = text("""
    UPDATE document_versions SET state = 'purged', title = NULL
    WHERE document_id = :document AND version = :version AND state = :state
""")
# Text, chunks and vectors were read out of the original, and go with it.
_DELETE = text("DELETE FROM originals WHERE document_id = :document AND version = :version")


@dataclass(frozen=True, slots=True)
class NewPurge:
    """A version to be purged, and why; the reason is kept."""

    document_id: UUID
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class PurgeCard:
    """A purge: `pending`, `purged` or `withdrawn`. `erased_at`: when nothing was left in the tables' files either."""

    id: UUID
    document_id: UUID
    version: int
    reason: str
    status: str
    requested_by: str
    requested_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    erased_at: datetime | None


async def request(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str, wanted: NewPurge
) -> PurgeCard:
    """Ask for a purge.

    Raises `InvalidRequest`; `Conflict` for a version that is live, not read yet, gone or asked for already;
    `NotFound` or `Denied` where `by` may not purge.
    """
    if not wanted.reason.strip() or len(wanted.reason) > REASON_MAX:
        raise InvalidRequest("reason", "empty or too long", allowed=f"1..{REASON_MAX} characters")
    collection = (await require(authority, transaction, by, Action.PURGE, slug)).id
    requesters = [party.key for party in by.parties]
    if await _confirmer(transaction, collection) in requesters:
        raise Conflict("Who confirms the purges of a collection does not ask for them.")
    await printer.present(transaction, by, Action.PURGE)
    values = {"collection": collection, "document": wanted.document_id, "version": wanted.version}
    await _refuse_standing(transaction, values)
    asked = {**values, "reason": wanted.reason, "by": by.key, "requesters": requesters}
    row = (await transaction.connection.execute(_REQUEST, asked)).one_or_none()
    if row is None:
        raise Conflict("A purge of this version waits for its confirmation already.")
    return PurgeCard(*row)


async def confirm(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str, id_: UUID
) -> PurgeCard:
    """Carry out a purge that somebody else asked for; only the collection's purge confirmer may, and in person.

    Raises `Conflict` when it was decided already or its version is live again; `NotFound`; `Denied`.
    """
    collection = (await require(authority, transaction, by, Action.PURGE, slug)).id
    await hold(transaction, collection)  # no rollback brings the version back meanwhile
    if by.actor is not None or by.key != await _confirmer(transaction, collection):
        raise Denied("Only the collection's purge confirmer confirms purges, in person and not through an agent.")
    await printer.present(transaction, by, Action.PURGE)
    asked = await _pending(transaction, collection, id_)
    if by.key in asked.requesters:
        raise Denied("Somebody else than who asked for a purge confirms it.")
    values = {"collection": collection, "document": asked.document_id, "version": asked.version}
    state = await _refuse_standing(transaction, values)
    row = (await transaction.connection.execute(_CONFIRM, {"id": id_, "by": by.key})).one()
    if (await transaction.connection.execute(_MARK, {**values, "state": state})).rowcount != 1:
        raise Conflict("This version is just being read again.")
    deleted = (await transaction.connection.execute(_DELETE, values)).rowcount
    if deleted != 1 and state != "failed":  # of what failed the original may be gone already
        raise InternalError  # half a purge is none
    return PurgeCard(*row)


async def withdraw(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str, id_: UUID
) -> PurgeCard:
    """Drop a purge that is not confirmed yet; whoever may purge the document may. Raises as `confirm` does."""
    collection = (await require(authority, transaction, by, Action.PURGE, slug)).id
    await printer.present(transaction, by, Action.PURGE)
    await _pending(transaction, collection, id_)
    return PurgeCard(*(await transaction.connection.execute(_WITHDRAW, {"id": id_, "by": by.key})).one())


async def listed(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    slug: str,
    *,
    after: UUID,
    limit: int,
) -> list[PurgeCard]:
    """The purges of the documents that `by` may purge, by id. Raises `NotFound` or `Denied` as `require` does."""
    collection = (await require(authority, transaction, by, Action.PURGE, slug)).id
    await printer.present(transaction, by, Action.PURGE)
    values = {"collection": collection, "after": after, "limit": limit}
    return [PurgeCard(*row) for row in await transaction.connection.execute(_PAGE, values)]


async def _confirmer(transaction: Transaction, collection: UUID) -> str | None:
    found: str | None = (await transaction.connection.execute(_CONFIRMER, {"collection": collection})).scalar_one()
    return found


async def _pending(transaction: Transaction, collection: UUID, id_: UUID) -> Row[Any]:
    row = (await transaction.connection.execute(_HELD, {"collection": collection, "id": id_})).one_or_none()
    if row is None:
        raise NotFound
    if row.status != "pending":
        raise Conflict(f"This purge is {row.status} already.")
    return row


async def _refuse_standing(transaction: Transaction, values: dict[str, Any]) -> str:
    """The state of a version; raises unless there is such a one that is not live, not being read, and not purged."""
    row = (await transaction.connection.execute(_VERSION, values)).one_or_none()
    if row is None:
        raise NotFound
    if row.is_live:
        raise Conflict("This version is live: publish another one, or remove the document and publish, first.")
    if row.state in ("staged", "purged"):
        raise Conflict("This version is not read yet." if row.state == "staged" else "Nothing of this version is kept.")
    return str(row.state)
