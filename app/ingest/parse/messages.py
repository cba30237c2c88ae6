"""What a parser process and the one that started it say to one another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import msgspec

from app.domain.documents import ExtractedText
from app.errors import (
    EmptyDocument,
    IngestError,
    LimitExceeded,
    PageNotRecognised,
    PasswordRequired,
    RecogniserMissing,
    TooManyScannedPages,
    UnreadableFile,
    UnsupportedFile,
)

_FAILURES = {
    error.__name__: error for error in (EmptyDocument, LimitExceeded, PasswordRequired, UnreadableFile, UnsupportedFile)
}
_NUMBERED = {error.__name__: error for error in (PageNotRecognised, RecogniserMissing, TooManyScannedPages)}


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """What one parser process may use: address space, processor and wall time, code points of text, and for pages
    that are pictures how many there may be, and seconds that each may take besides."""

    memory_bytes: int = 2 * 1024**3
    cpu_seconds: int = 120
    wall_seconds: float = 180.0
    max_text_chars: int = 50_000_000
    ocr_pages: int = 200
    ocr_page_seconds: int = 30

    @property
    def cpu_seconds_at_most(self) -> int:
        """Processor time with as many pictures of pages as there may be."""
        return self.cpu_seconds + self.ocr_pages * self.ocr_page_seconds

    def wall_seconds_with(self, pages: int) -> float:
        """Wall time once so many pictures of pages have been begun."""
        return self.wall_seconds + 1.5 * self.ocr_page_seconds * min(pages, self.ocr_pages)


class Request(msgspec.Struct):
    """Goes before the file's bytes."""

    file_name: str
    password: str | None
    limits: ParserLimits


class Answer(msgspec.Struct):
    """One of: how many pages of how many have been read, the text, or a failure by its class and number."""

    pages: tuple[int, int] | None = None
    extracted: ExtractedText | None = None
    failure: str | None = None
    number: int = 0

    @classmethod
    def of(cls, error: IngestError) -> Self:
        """A failure as it is sent: words are not, since a process that a file has taken over could send any."""
        return cls(failure=type(error).__name__, number=getattr(error, "number", 0))

    def text(self) -> ExtractedText:
        """The text. Raises the failure."""
        if self.extracted is not None:
            return self.extracted
        if numbered := _NUMBERED.get(self.failure or ""):
            raise numbered(self.number)
        raise _FAILURES.get(self.failure or "", UnreadableFile)


def framed(answer: Answer) -> bytes:
    """An answer as bytes, with its length before it."""
    body = msgspec.msgpack.encode(answer)
    return len(body).to_bytes(4, "big") + body


class Inbox:
    """Answers out of the pieces that a pipe gives."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self._bytes)

    def take(self, piece: bytes) -> Iterator[Answer]:
        """The answers that this piece completes. Raises UnreadableFile for what is none."""
        self._bytes += piece
        while len(self._bytes) >= 4 and len(self._bytes) >= (end := 4 + int.from_bytes(self._bytes[:4], "big")):
            body = bytes(self._bytes[4:end])
            del self._bytes[:end]
            try:
                yield msgspec.msgpack.decode(body, type=Answer)
            except msgspec.DecodeError:
                raise UnreadableFile from None
