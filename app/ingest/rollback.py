"""Rollback: the state of an earlier edition becomes the next one. Nothing that was live in any edition is rewritten."""

from sqlalchemy import text

from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import Conflict, NotFound
from app.ingest.turnover import Coming, Publication, Turnover, hold, turn_over

NAMED_MAX = 20  # of the documents that stand in the way

# Where the edition and the present differ, as far as row-level security shows it to who may publish.
_DIFFERENT = text("""
    SELECT d.id, was.version AS was, present.version AS present, v.state = 'purged' AS purged
    FROM documents d
    LEFT JOIN publications was ON was.document_id = d.id AND was.live_from <= :edition
                               AND coalesce(was.live_until > :edition, true)
    LEFT JOIN publications present ON present.document_id = d.id AND present.live_until IS NULL
    LEFT JOIN document_versions v ON v.document_id = d.id AND v.version = was.version
    WHERE d.collection_id = :collection AND was.version IS DISTINCT FROM present.version
    ORDER BY d.id
""")
# Of a removal that waits for its publish nothing is changed: it waits on, like a draft.
_RETURN = text("UPDATE documents SET removed_at = NULL WHERE id = ANY(:documents) AND removed_at IS NOT NULL")


async def rollback(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str, edition: int
) -> Publication:
    """Publish the state of `edition` as a new edition. Drafts stay drafts, and wait for the next publish.

    Documents that came later are withdrawn, those that have gone since come back. As with a publish, what `by` may
    not publish stays as it is. Raises `Conflict` where a version to come back was purged, `NotFound` for an edition
    that there never was or a collection that `by` may not see, `Denied` where `by` may not publish it.
    """
    collection = (await require(authority, transaction, by, Action.PUBLISH, slug)).id
    present = await hold(transaction, collection)
    if not 1 <= edition <= present:
        raise NotFound
    await printer.present(transaction, by, Action.PUBLISH)
    values = {"collection": collection, "edition": edition}
    rows = (await transaction.connection.execute(_DIFFERENT, values)).all()
    if purged := [str(row.id) for row in rows if row.purged]:
        raise Conflict(
            f"Of {slug}@{edition}, {len(purged)} of the documents that would come back were purged since.",
            details={"document_ids": purged[:NAMED_MAX]},
        )
    returning = [row.id for row in rows if row.present is None]
    await transaction.connection.execute(_RETURN, {"documents": returning})
    change = Turnover(
        coming=[Coming(row.id, row.was) for row in rows if row.was is not None],
        going=[row.id for row in rows if row.was is None],
        rolled_back_to=edition,
    )
    return await turn_over(transaction, collection, slug, present, by.key, change)
