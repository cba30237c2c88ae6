"""The turn from one edition to the next: what goes and what comes, in the transaction of whoever decided it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text

from app.db.session import Transaction
from app.errors import InternalError

_HOLD = text("SELECT corpus_version FROM collections WHERE id = :collection FOR UPDATE")
_WITHDRAW = text("""
    UPDATE document_versions SET published_until = :edition
    WHERE document_id = ANY(:documents) AND published_from IS NOT NULL AND published_until IS NULL
""")
_WITHDRAW_INDEX = text("""
    UPDATE chunk_index SET live_until = :edition
    WHERE document_id = ANY(:documents) AND live_from IS NOT NULL AND live_until IS NULL
""")
_SHOW = text("""
    UPDATE document_versions v
    SET state = 'published', published_from = :edition, published_until = NULL, published_at = now()
    FROM unnest(CAST(:documents AS uuid[]), CAST(:versions AS integer[])) AS n (document_id, version)
    WHERE v.document_id = n.document_id AND v.version = n.version
""")
_SHOW_INDEX = text("""
    UPDATE chunk_index i SET live_from = :edition, live_until = NULL
    FROM unnest(CAST(:documents AS uuid[]), CAST(:versions AS integer[])) AS n (document_id, version)
    WHERE i.document_id = n.document_id AND i.version = n.version
""")
_RAISE = text("UPDATE collections SET corpus_version = :edition WHERE id = :collection")
_EDITION = text("""
    INSERT INTO editions (collection_id, corpus_version, documents, published_by, rolled_back_to)
    VALUES (:collection, :edition, :count, :by, :rolled_back_to)
""")


@dataclass(frozen=True, slots=True)
class Publication:
    """What a publish or a rollback did. `documents` counts those that changed; none means that nothing was new."""

    corpus_version: str
    documents: int
    dedup_hit: bool


class Coming(NamedTuple):
    """A version that is to be live."""

    document_id: UUID
    version: int


@dataclass(frozen=True, slots=True)
class Turnover:
    """What changes. Of a document in `coming` whatever was live goes; those in `going` go without another."""

    coming: Sequence[Coming]
    going: Sequence[UUID]
    rolled_back_to: int | None = None


async def hold(transaction: Transaction, collection: UUID) -> int:
    """The number of the present edition, which nobody else turns over before this transaction ends."""
    return int((await transaction.connection.execute(_HOLD, {"collection": collection})).scalar_one())


async def turn_over(
    transaction: Transaction, collection: UUID, slug: str, present: int, by: str, change: Turnover
) -> Publication:
    """Make `change` the next edition of a collection that is held; without any change the present one stays."""
    count = len(change.coming) + len(change.going)
    if not count:
        return Publication(f"{slug}@{present}", 0, dedup_hit=True)
    edition, documents = present + 1, [one.document_id for one in change.coming]
    gone = {"edition": edition, "documents": [*documents, *change.going]}
    come = {"edition": edition, "documents": documents, "versions": [one.version for one in change.coming]}
    for statement, values in ((_WITHDRAW, gone), (_WITHDRAW_INDEX, gone)):
        await transaction.connection.execute(statement, values)
    shown = (await transaction.connection.execute(_SHOW, come)).rowcount
    if shown != len(documents):  # row-level security hides some of what was found a moment ago: half is no edition
        raise InternalError
    await transaction.connection.execute(_SHOW_INDEX, come)
    raised = {"collection": collection, "edition": edition, "count": count, "by": by}
    await transaction.connection.execute(_RAISE, raised)
    await transaction.connection.execute(_EDITION, {**raised, "rolled_back_to": change.rolled_back_to})
    return Publication(f"{slug}@{edition}", count, dedup_hit=False)
