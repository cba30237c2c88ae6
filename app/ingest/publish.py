"""Publishing: every draft of a collection becomes its next edition, in one transaction."""

import asyncio

from sqlalchemy import text

from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Database, Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import Conflict
from app.ingest import jobs
from app.ingest.turnover import Coming, Publication, Turnover, hold, turn_over

WAIT_SECONDS = 300
DEADLINE_SECONDS = 600.0  # a large collection is turned over in one transaction, however long that takes
POLL_SECONDS = 0.5

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


async def publish(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str
) -> Publication:
    """Raise a collection's edition by one, with all its drafts and removals.

    Raises `Conflict` while its jobs run, `NotFound` or `Denied` where `by` may not publish.
    """
    collection = (await require(authority, transaction, by, Action.PUBLISH, slug)).id
    present = await hold(transaction, collection)
    if await jobs.waiting(transaction, collection):
        raise Conflict("Documents of this collection are still being read. Wait for their jobs, or say wait: true.")
    await printer.present(transaction, by, Action.PUBLISH)
    drafts = (await transaction.connection.execute(_DRAFTS, {"collection": collection})).all()
    removed = list((await transaction.connection.execute(_REMOVED, {"collection": collection})).scalars())
    change = Turnover([Coming(*draft) for draft in drafts], removed)
    return await turn_over(transaction, collection, slug, present, by.key, change)


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
