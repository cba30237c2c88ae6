"""The editions of a collection, and what changed between two of them, as far as the reader may see the documents."""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import InvalidRequest, NotFound

NEWEST = 2**31 - 1  # greater than the number of any edition
_NAME = re.compile(r"(?:(?P<slug>[^@]+)@)?(?P<number>[0-9]{1,10})")

# Counted over the documents that row-level security shows: the number that was published once tells of hidden ones.
_PAGE = text("""
    SELECT k.slug || '@' || e.corpus_version AS corpus_version, e.corpus_version AS number,
           coalesce(c.documents, 0) AS documents, e.published_by, e.published_at,
           k.slug || '@' || e.rolled_back_to AS rolled_back_to
    FROM editions e JOIN collections k ON k.id = e.collection_id
    LEFT JOIN (
        SELECT t.edition, count(DISTINCT p.document_id) AS documents
        FROM publications p JOIN documents d ON d.id = p.document_id,
             unnest(ARRAY[p.live_from, p.live_until]) AS t (edition)
        WHERE d.collection_id = :collection GROUP BY t.edition
    ) c ON c.edition = e.corpus_version
    WHERE e.collection_id = :collection AND e.corpus_version < :before
    ORDER BY e.corpus_version DESC LIMIT :limit
""")
_PRESENT = text("SELECT corpus_version FROM collections WHERE id = :collection")
_DIFF = text("""
    SELECT d.id AS document_id, coalesce(v.title, d.title) AS title,
           CASE WHEN old.version IS NULL THEN 'added' WHEN new.version IS NULL THEN 'removed' ELSE 'changed' END
               AS change,
           old.version AS from_version, new.version AS to_version
    FROM documents d
    LEFT JOIN publications old ON old.document_id = d.id AND old.live_from <= :old
                               AND coalesce(old.live_until > :old, true)
    LEFT JOIN publications new ON new.document_id = d.id AND new.live_from <= :new
                               AND coalesce(new.live_until > :new, true)
    LEFT JOIN document_versions v ON v.document_id = d.id AND v.version = coalesce(new.version, old.version)
    WHERE d.collection_id = :collection AND d.id > :after AND old.version IS DISTINCT FROM new.version
    ORDER BY d.id LIMIT :limit
""")


@dataclass(frozen=True, slots=True)
class EditionCard:
    """One edition. `documents` counts those that changed with it, of those that the reader may see."""

    corpus_version: str
    number: int
    documents: int
    published_by: str
    published_at: datetime
    rolled_back_to: str | None


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A document that two editions hold differently; a version is null where the edition does not hold it."""

    document_id: UUID
    title: str
    change: str
    from_version: int | None
    to_version: int | None


@dataclass(frozen=True, slots=True)
class Span:
    """From the state of edition `old` (0: before the first) to that of `new`."""

    old: int
    new: int


def edition_number(slug: str, given: int | str, *, least: int = 1) -> int:
    """The number of an edition as people name it: 7, "7" or "slug@7". Raises `InvalidRequest`."""
    found = _NAME.fullmatch(str(given))
    if found is None or found["slug"] not in (None, slug) or not least <= int(found["number"]) <= NEWEST:
        raise InvalidRequest("corpus_version", "not an edition of this collection", allowed=f"{slug}@N, or N")
    return int(found["number"])


async def listed(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    slug: str,
    *,
    before: int,
    limit: int,
) -> list[EditionCard]:
    """The editions of a collection below `before`, newest first. Raises `NotFound` or `Denied` as `require` does."""
    collection = await _admitted(transaction, authority, printer, by, slug)
    values = {"collection": collection, "before": before, "limit": limit}
    return [EditionCard(*row) for row in await transaction.connection.execute(_PAGE, values)]


async def diff(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    slug: str,
    span: Span,
    *,
    after: UUID,
    limit: int,
) -> list[DocumentChange]:
    """What changed over `span`, by document id, of the documents that `by` may run or else search.

    Raises `NotFound` for an edition that there never was, `NotFound` or `Denied` as `require` does.
    """
    collection = await _admitted(transaction, authority, printer, by, slug)
    present = (await transaction.connection.execute(_PRESENT, {"collection": collection})).scalar_one()
    if not (0 <= span.old <= present and 0 <= span.new <= present):
        raise NotFound
    values = {"collection": collection, "old": span.old, "new": span.new, "after": after, "limit": limit}
    return [DocumentChange(*row) for row in await transaction.connection.execute(_DIFF, values)]


async def _admitted(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str
) -> UUID:
    """The collection, with a ticket for the documents that `by` may ingest, or publish, or else search."""
    for action in (Action.INGEST, Action.PUBLISH):
        scope = await authority.compile(transaction, by, action)
        if slug in scope.collections:
            await printer.present(transaction, by, action)
            return scope.collections[slug].id
    collection = (await require(authority, transaction, by, Action.SEARCH, slug)).id
    await printer.present(transaction, by, Action.SEARCH)
    return collection
