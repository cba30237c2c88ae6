"""Publishing: every draft of a collection becomes its next edition, in one transaction."""

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Database, Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import Conflict
from app.ingest import jobs

WAIT_SECONDS = 300
DEADLINE_SECONDS = 600.0  # a large collection is turned over in one transaction, however long that takes
POLL_SECONDS = 0.5

_LOCK = text("SELECT corpus_version FROM collections WHERE id = :collection FOR UPDATE")
# Of several drafts of one document only the newest is published; the older ones were never anybody's to see.
_DRAFTS = text("""
    SELECT DISTINCT ON (v.document_id) v.document_id, v.version
    FROM document_versions v JOIN documents d ON d.id = v.document_id
    WHERE d.collection_id = :collection AND d.removed_at IS NULL AND v.state = 'draft'
      AND v.version > coalesce((SELECT max(p.version) FROM document_versions p
                                WHERE p.document_id = v.document_id AND p.published_from IS NOT NULL), 0)
    ORDER BY v.document_id, v.version DESC
""")
_REMOVED = text("""
    SELECT v.document_id FROM document_versions v JOIN documents d ON d.id = v.document_id
    WHERE d.collection_id = :collection AND d.removed_at IS NOT NULL
      AND v.published_from IS NOT NULL AND v.published_until IS NULL
""")
_WITHDRAW = text("""
    UPDATE document_versions SET published_until = :edition
    WHERE document_id = ANY(:documents) AND published_from IS NOT NULL AND published_until IS NULL
""")
_WITHDRAW_INDEX = text("""
    UPDATE chunk_index SET live_until = :edition
    WHERE document_id = ANY(:documents) AND live_from IS NOT NULL AND live_until IS NULL
""")
_SHOW = text("""
    UPDATE document_versions v SET state = 'published', published_from = :edition, published_at = now()
    FROM unnest(CAST(:documents AS uuid[]), CAST(:versions AS integer[])) AS n (document_id, version)
    WHERE v.document_id = n.document_id AND v.version = n.version
""")
_SHOW_INDEX = text("""
    UPDATE chunk_index i SET live_from = :edition
    FROM unnest(CAST(:documents AS uuid[]), CAST(:versions AS integer[])) AS n (document_id, version)
    WHERE i.document_id = n.document_id AND i.version = n.version
""")
_RAISE = text("UPDATE collections SET corpus_version = :edition WHERE id = :collection")
_EDITION = text("""
    INSERT INTO editions (collection_id, corpus_version, documents, published_by)
    VALUES (:collection, :edition, :count, :by)
""")


@dataclass(frozen=True, slots=True)
class Publication:
    """What a publish did. `documents` counts those that changed; none means that there was nothing new."""

    corpus_version: str
    documents: int
    dedup_hit: bool


async def publish(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str
) -> Publication:
    """Raise a collection's edition by one, with all its drafts and removals.

    Raises `Conflict` while its jobs run, `NotFound` or `Denied` where `by` may not publish.
    """
    collection = (await require(authority, transaction, by, Action.PUBLISH, slug)).id
    present = (await transaction.connection.execute(_LOCK, {"collection": collection})).scalar_one()
    if await jobs.waiting(transaction, collection):
        raise Conflict("Documents of this collection are still being read. Wait for their jobs, or say wait: true.")
    await printer.present(transaction, by, Action.PUBLISH)
    drafts = (await transaction.connection.execute(_DRAFTS, {"collection": collection})).all()
    removed = list((await transaction.connection.execute(_REMOVED, {"collection": collection})).scalars())
    if not drafts and not removed:
        return Publication(f"{slug}@{present}", 0, dedup_hit=True)
    await _turn_over(transaction, present + 1, drafts, removed)
    values = {"collection": collection, "edition": present + 1, "count": len(drafts) + len(removed), "by": by.key}
    await transaction.connection.execute(_RAISE, values)
    await transaction.connection.execute(_EDITION, values)
    return Publication(f"{slug}@{present + 1}", len(drafts) + len(removed), dedup_hit=False)


async def unfinished(transaction: Transaction, authority: Authority, by: Principal, slug: str) -> int:
    """How many jobs a publish of this collection would have to wait for; none for who may not publish it."""
    scope = await authority.compile(transaction, by, Action.PUBLISH)
    return await jobs.waiting(transaction, scope.collections[slug].id) if slug in scope.collections else 0


async def settled(database: Database, authority: Authority, by: Principal, slug: str) -> None:
    """Wait, within bounds, until no job of the collection is unfinished. Who may not publish waits for nothing."""
    for _ in range(int(WAIT_SECONDS / POLL_SECONDS)):
        if not await database.read(lambda snapshot: unfinished(snapshot, authority, by, slug)):
            return
        await asyncio.sleep(POLL_SECONDS)


async def _turn_over(transaction: Transaction, edition: int, drafts: Any, removed: list[UUID]) -> None:
    documents = [draft.document_id for draft in drafts]
    going = {"edition": edition, "documents": [*documents, *removed]}
    coming = {"edition": edition, "documents": documents, "versions": [draft.version for draft in drafts]}
    for statement, values in ((_WITHDRAW, going), (_WITHDRAW_INDEX, going), (_SHOW, coming), (_SHOW_INDEX, coming)):
        await transaction.connection.execute(statement, values)
