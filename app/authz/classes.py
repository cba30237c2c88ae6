"""Access classes: found or made, and a document moved from one to another."""

from uuid import UUID

from sqlalchemy import text

from app.authz.casbin_policy import permits
from app.db.session import Transaction
from app.domain.access import AccessClass, AccessScope

_MAKE = text("""
    INSERT INTO access_classes (collection_id, labels, document_id)
    VALUES (:collection, CAST(:labels AS text[]), CAST(:document AS uuid)) ON CONFLICT DO NOTHING
""")
_FIND = text("""
    SELECT id FROM access_classes WHERE collection_id = :collection AND labels = CAST(:labels AS text[])
    AND document_id IS NOT DISTINCT FROM CAST(:document AS uuid)
""")
# Before the class is read: what waited for a row would still see it by the rights that its statement began with.
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('class ' || CAST(:document AS text), 0))")
_OF = text("""
    SELECT a.id, a.collection_id, a.labels, a.document_id
    FROM documents d JOIN access_classes a ON a.id = d.class_id WHERE d.id = :document
""")
_MOVE = text("UPDATE documents SET class_id = :class_id WHERE id = :document AND class_id <> :class_id")


async def ensure(
    transaction: Transaction, collection_id: UUID, labels: tuple[str, ...], document_id: UUID | None = None
) -> AccessClass:
    """The access class with this collection, labels and own document; made if it is the first of its kind."""
    ordered = sorted(set(labels))
    values = {"collection": collection_id, "labels": ordered, "document": document_id}
    found = (await transaction.connection.execute(_FIND, values)).scalar_one_or_none()
    if found is None:
        await transaction.connection.execute(_MAKE, values)
        found = (await transaction.connection.execute(_FIND, values)).scalar_one()
    return AccessClass(found, collection_id, tuple(ordered), document_id)


async def held(transaction: Transaction, document_id: UUID) -> AccessClass | None:
    """The class that a document is in, which nobody else changes until this transaction ends.

    None where the transaction's ticket does not show the document. What changes its labels must keep its own rules,
    and the reverse: so both begin here.
    """
    await transaction.connection.execute(_LOCK, {"document": document_id})
    row = (await transaction.connection.execute(_OF, {"document": document_id})).one_or_none()
    return None if row is None else AccessClass(row.id, row.collection_id, tuple(row.labels), row.document_id)


def covers(scope: AccessScope, access_class: AccessClass) -> bool:
    """Whether `scope` reaches a class that may be younger than it: the rules are asked, not the compiled list."""
    reached = any(part.id == access_class.collection_id for part in scope.collections.values())
    return reached and all(permits(known, scope.action, access_class.resources) for known in scope.parties)


async def move(transaction: Transaction, document_id: UUID, to: AccessClass) -> None:
    """Move a document, its texts, chunks and index rows to another class, in this transaction, by one UPDATE."""
    await transaction.connection.execute(_MOVE, {"document": document_id, "class_id": to.id})
