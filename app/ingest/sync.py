"""A folder and a collection brought to agree: what is new, changed, moved and gone is planned before it is done.

A file is known by its source id, `NAME/path/in/the/folder`. Only documents below `NAME/` are ever moved or removed:
what people uploaded beside them is none of the folder's business.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import NotFound

# A version that failed is not what the folder holds, whatever its bytes were: it is brought in again.
_KNOWN = text("""
    SELECT d.id, d.source_id, CASE WHEN v.state IN ('staged', 'draft', 'published') THEN v.content_sha256 ELSE '' END
    FROM documents d
    JOIN LATERAL (
        SELECT state, content_sha256 FROM document_versions WHERE document_id = d.id ORDER BY version DESC LIMIT 1
    ) v ON true
    WHERE d.collection_id = :collection AND d.removed_at IS NULL AND starts_with(d.source_id, :prefix)
    ORDER BY d.source_id, d.id
""")
_MOVE = text("UPDATE documents SET source_id = :source WHERE id = :document AND source_id = :before")


@dataclass(frozen=True, slots=True)
class Known:
    """A document that an earlier sync brought in, and the SHA-256 of its newest bytes."""

    document_id: UUID
    source: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Move:
    """A document whose file lies elsewhere now."""

    document_id: UUID
    before: str
    source: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What makes a collection agree with a folder. `same` counts what agrees already."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[Move, ...]
    gone: tuple[Known, ...]
    same: int

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.new or self.changed or self.moved or self.gone)


def plan(found: Mapping[str, str], known: Iterable[Known]) -> Plan:
    """Compare a folder (source id: SHA-256) with what is known of it.

    A file that is gone from one place while the same bytes are new in another was moved, and stays the same document.
    """
    by_source = {one.source: one for one in known}
    new = [source for source in sorted(found) if source not in by_source]
    gone = [one for source, one in sorted(by_source.items()) if source not in found]
    moved: list[Move] = []
    for one in list(gone):
        place = next((source for source in new if found[source] == one.sha256), None)
        if place is not None:
            moved.append(Move(one.document_id, one.source, place))
            new.remove(place)
            gone.remove(one)
    changed = tuple(
        source for source in sorted(found) if source in by_source and found[source] != by_source[source].sha256
    )
    same = len(found) - len(new) - len(moved) - len(changed)
    return Plan(tuple(new), changed, tuple(moved), tuple(gone), same)


async def known(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, slug: str, name: str
) -> list[Known]:
    """The documents below `name/`. Raises `NotFound` or `Denied` where `by` may not ingest."""
    collection = await require(authority, transaction, by, Action.INGEST, slug)
    await printer.present(transaction, by, Action.INGEST)
    values = {"collection": collection.id, "prefix": f"{name}/"}
    return [Known(*row) for row in await transaction.connection.execute(_KNOWN, values)]


async def move(transaction: Transaction, printer: TicketPrinter, by: Principal, moved: Move) -> None:
    """Note where a document's file lies now. Raises `NotFound` unless `by` may ingest it and it lay where it did."""
    await printer.present(transaction, by, Action.INGEST)
    values = {"document": moved.document_id, "before": moved.before, "source": moved.source}
    if (await transaction.connection.execute(_MOVE, values)).rowcount != 1:
        raise NotFound
