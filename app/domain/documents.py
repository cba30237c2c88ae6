"""What is stored and what is returned: documents, their versions, chunks and fragments. Pure types."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class PageSpan:
    """One page, slide or sheet: `text[char_start:char_end]` of the extracted text, in code points."""

    page: int
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading at `char_start` of the extracted text; `level` 1 is the outermost."""

    level: int
    title: str
    char_start: int


@dataclass(frozen=True, slots=True)
class TableSpan:
    """A table at `text[char_start:char_end]`, a row a line, and the header that its rows are read by."""

    char_start: int
    char_end: int
    header: str


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """What a parser made of one file. `text` is what every offset in the system counts, in code points."""

    text: str
    media_type: str
    title: str | None = None
    pages: tuple[PageSpan, ...] = ()
    headings: tuple[Heading, ...] = ()
    tables: tuple[TableSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """An indexed piece of one document version: `text == extracted.text[char_start:char_end]`, always."""

    ordinal: int
    char_start: int
    char_end: int
    text: str
    page: int | None = None
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fragment:
    """A chunk as returned to a caller, with all that is needed to check it against its original."""

    document_id: UUID
    document_version: int
    corpus_version: str
    collection: str
    title: str
    text: str
    source_uri: str
    media_type: str
    page: int | None
    heading_path: tuple[str, ...]
    char_start: int
    char_end: int
    content_sha256: str
    published_at: datetime
    superseded: bool
    chunk_id: UUID
    score: float = field(default=0.0)
