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


def covers(scope: AccessScope, access_class: AccessClass) -> bool:
    """Whether `scope` reaches a class that may be younger than it: the rules are asked, not the compiled list."""
    reached = any(part.id == access_class.collection_id for part in scope.collections.values())
    return reached and all(permits(known, scope.action, access_class.resources) for known in scope.parties)


async def move(transaction: Transaction, document_id: UUID, to: AccessClass) -> None:
    """Move a document, its texts, chunks and index rows to another class, in this transaction, by one UPDATE."""
    await transaction.connection.execute(_MOVE, {"document": document_id, "class_id": to.id})
