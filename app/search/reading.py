"""Opening what a fragment cites: the extracted text (needs `search`) and the original (needs `open`)."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, TextClause, text

from app.authz.check import is_for, still_permits
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import AccessClass, Action
from app.domain.documents import PageSpan
from app.domain.principal import Principal
from app.errors import InsufficientScope, NotFound, RangeUnsatisfiable
from app.search.fragments import disagreement

# Drafts are nobody's to read here. A superseded version is, while another version of its document is live; of a
# document that the present edition does not hold nothing is.
_FACTS = """
    SELECT coalesce(v.title, d.title) AS title, v.file_name, v.media_type, v.content_sha256, v.size, v.published_at,
           v.published_until IS NOT NULL AS superseded,
           k.slug, a.id AS class_id, a.collection_id, a.labels, a.document_id AS own_document, {columns}
    FROM document_versions v
    JOIN documents d ON d.id = v.document_id
    JOIN access_classes a ON a.id = d.class_id
    JOIN collections k ON k.id = a.collection_id
    {join}
    WHERE v.document_id = :document AND v.version = :version AND v.state = 'published'
      AND EXISTS (SELECT FROM publications p WHERE p.document_id = v.document_id AND p.live_until IS NULL)
"""
_VERSION = text(_FACTS.format(columns="NULL", join=""))
_TEXT = text(
    _FACTS.format(
        columns="t.content, t.pages",
        join="JOIN document_texts t ON t.document_id = v.document_id AND t.version = v.version",
    )
)
_ORIGINAL = text(
    _FACTS.format(columns="NULL", join="JOIN originals o ON o.document_id = v.document_id AND o.version = v.version")
)
# Stored uncompressed, so that a part is read without the rest.
_CONTENT = text("""
    SELECT substring(content FROM :first + 1 FOR :count) FROM originals
    WHERE document_id = :document AND version = :version
""")


@dataclass(frozen=True, slots=True)
class VersionCard:
    """One published edition of a document."""

    document_id: UUID
    version: int
    collection: str
    title: str
    file_name: str
    media_type: str
    content_sha256: str
    size: int
    published_at: datetime
    superseded: bool


@dataclass(frozen=True, slots=True)
class VersionText:
    """The extracted text that every offset of this version counts in, in code points."""

    card: VersionCard
    text: str = field(repr=False)
    pages: tuple[PageSpan, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an original, in bytes from 0, `last` included; without `first`, the last `last` bytes.

    With `only_of` given, it is meant of an original with that SHA-256 alone, and of any other the whole is wanted.
    """

    first: int | None = None
    last: int | None = None
    only_of: str | None = None

    def within(self, size: int) -> tuple[int, int]:
        """Its first byte and the one after its last, in an original of `size`. Raises `RangeUnsatisfiable`."""
        end = size if self.first is None or self.last is None else min(self.last + 1, size)
        first = max(size - (self.last or 0), 0) if self.first is None and self.last is not None else self.first or 0
        if first >= end:
            raise RangeUnsatisfiable(size)
        return first, end


@dataclass(frozen=True, slots=True)
class Original:
    """The bytes as they were uploaded, or those from `first` to before `end`."""

    card: VersionCard
    content: bytes = field(repr=False)
    first: int
    end: int
    is_part: bool


class Reader:
    """Reads document versions by id, behind the same three checks as a search.

    Every method raises `NotFound`, for what does not exist and for what may not be seen alike, and `InsufficientScope`
    to a token that is for other actions.
    """

    def __init__(self, authority: Authority, printer: TicketPrinter) -> None:
        self._authority = authority
        self._printer = printer

    async def version(self, transaction: Transaction, by: Principal, document: UUID, version: int) -> VersionCard:
        """What is known of one edition, for who may search it."""
        return _card(document, version, await self._read(transaction, by, Action.SEARCH, _VERSION, document, version))

    async def text(self, transaction: Transaction, by: Principal, document: UUID, version: int) -> VersionText:
        """The extracted text, for who may search it."""
        row = await self._read(transaction, by, Action.SEARCH, _TEXT, document, version)
        return VersionText(_card(document, version, row), row.content, tuple(PageSpan(*page) for page in row.pages))

    async def original(
        self, transaction: Transaction, by: Principal, document: UUID, version: int, part: Part | None = None
    ) -> Original:
        """The original's bytes, or a part of them, for who may open it. Raises `RangeUnsatisfiable`, too."""
        row = await self._read(transaction, by, Action.OPEN, _ORIGINAL, document, version)
        meant = part is not None and part.only_of in (None, row.content_sha256)
        first, end = part.within(row.size) if part is not None and meant else (0, row.size)
        values = {"document": document, "version": version, "first": first, "count": end - first}
        content = (await transaction.connection.execute(_CONTENT, values)).scalar_one()
        return Original(_card(document, version, row), bytes(content), first, end, is_part=meant)

    async def _read(
        self,
        transaction: Transaction,
        by: Principal,
        action: Action,
        statement: TextClause,
        document: UUID,
        version: int,
    ) -> Row[Any]:
        if not is_for(by, action):
            raise InsufficientScope(action)
        scope = await self._authority.compile(transaction, by, action)
        await self._printer.present(transaction, by, action)
        values = {"document": document, "version": version}
        row = (await transaction.connection.execute(statement, values)).one_or_none()
        if row is None:
            raise NotFound
        own = AccessClass(row.class_id, row.collection_id, tuple(row.labels), row.own_document)
        if own.id not in scope.classes() or not still_permits(scope, row.slug, own):
            raise disagreement("scope or casbin", 1)
        return row


def _card(document: UUID, version: int, row: Row[Any]) -> VersionCard:
    return VersionCard(
        document,
        version,
        row.slug,
        row.title,
        row.file_name,
        row.media_type,
        row.content_sha256,
        row.size,
        row.published_at,
        row.superseded,
    )
