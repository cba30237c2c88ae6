"""A collection's documents as their custodians and readers see them, and their removal."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from app.authz.check import refusal, require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import NotFound
from app.ingest import jobs

# Row-level security has cut the rows down to the ticket's before this query sees them. Readers are shown what is
# published, and of that only what the present edition says; custodians the drafts and failures too.
_CARDS = """
    SELECT d.id, coalesce(v.title, d.title), v.file_name, d.source_id, v.media_type, a.labels, d.tags,
           v.versions,
           CASE WHEN d.removed_at IS NOT NULL THEN 'removed'
                WHEN v.state IN ('staged', 'draft') THEN 'draft'
                WHEN v.state = 'failed' THEN 'failed'
                WHEN v.is_live THEN 'published'
                ELSE 'removed' END
    FROM documents d
    JOIN access_classes a ON a.id = d.class_id
    JOIN LATERAL (
        SELECT *, max(version) OVER () AS versions,
               bool_or(published_from IS NOT NULL AND published_until IS NULL) OVER () AS is_live
        FROM document_versions
        WHERE document_id = d.id
          AND (:custodian OR (published_from IS NOT NULL AND published_until IS NULL))
        ORDER BY version DESC LIMIT 1
    ) v ON true
    WHERE (:custodian OR d.removed_at IS NULL)
"""
_PAGE = text(_CARDS + " AND d.collection_id = :collection AND d.id > :after ORDER BY d.id LIMIT :limit")
_ONE = text(_CARDS + " AND d.id = :document")
_SLUG = text("SELECT k.slug FROM documents d JOIN collections k ON k.id = d.collection_id WHERE d.id = :document")
_REMOVE = text("UPDATE documents SET removed_at = now() WHERE id = :document AND removed_at IS NULL")


@dataclass(frozen=True, slots=True)
class DocumentCard:
    """A document as it is listed. `versions` is the number of its newest version that the reader may know of."""

    id: UUID
    title: str
    file_name: str
    source_id: str
    media_type: str | None
    labels: list[str]
    tags: list[str]
    versions: int
    status: str


async def listed(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    slug: str,
    *,
    after: UUID,
    limit: int,
) -> list[DocumentCard]:
    """The documents of a collection that `by` may ingest, or else those that `by` may search, by id.

    Raises `NotFound` or `Denied` as `require` does.
    """
    custody = await authority.compile(transaction, by, Action.INGEST)
    action = Action.INGEST if slug in custody.collections else Action.SEARCH
    collection = await require(authority, transaction, by, action, slug)
    await printer.present(transaction, by, action)
    values = {"custodian": action is Action.INGEST, "collection": collection.id, "after": after, "limit": limit}
    return [DocumentCard(*row) for row in await transaction.connection.execute(_PAGE, values)]


async def shown(transaction: Transaction, printer: TicketPrinter, by: Principal, document: UUID) -> DocumentCard:
    """One document. Raises `NotFound` unless `by` may ingest it, or search it and it is published."""
    for action in (Action.INGEST, Action.SEARCH):
        await printer.present(transaction, by, action)
        values = {"custodian": action is Action.INGEST, "document": document}
        row = (await transaction.connection.execute(_ONE, values)).one_or_none()
        if row is not None:
            return DocumentCard(*row)
    raise NotFound


async def remove(transaction: Transaction, printer: TicketPrinter, by: Principal, document: UUID) -> str:
    """Mark a document to be gone from the next edition on; returns its collection's slug.

    Raises `NotFound` to who may not see it, or when it is removed already; `Denied` (or `InsufficientScope`) to who
    may see it and not ingest it.
    """
    await printer.present(transaction, by, Action.INGEST)
    slug = (await transaction.connection.execute(_SLUG, {"document": document})).scalar_one_or_none()
    if slug is None:
        await shown(transaction, printer, by, document)
        raise refusal(by, Action.INGEST)
    if (await transaction.connection.execute(_REMOVE, {"document": document})).rowcount != 1:
        raise NotFound
    await jobs.forget_failed(transaction, document)
    return str(slug)
