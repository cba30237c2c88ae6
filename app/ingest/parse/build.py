"""The text under construction: blocks in, one string with exact offsets out."""

import re

from app.domain.documents import ExtractedText, Heading, PageSpan

_NEWLINES = re.compile(r"\r\n?")
_FORBIDDEN = re.compile("[\x00\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


def clean(text: str) -> str:
    """The only changes made to a source's text: newlines to `\\n`, no NUL or byte order mark, no lone surrogate."""
    return _SURROGATE.sub("\ufffd", _FORBIDDEN.sub("", _NEWLINES.sub("\n", text)))


def one_line(text: str) -> str:
    """`text` with every run of whitespace as one space: how titles are shown."""
    return _SPACES.sub(" ", text).strip()


class TextBuilder:
    """Collects blocks of one document; offsets are code points of the result."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._pages: list[PageSpan] = []
        self._page: tuple[int, int] | None = None

    def block(self, text: str, *, separator: str = "\n\n") -> int | None:
        """Adds a block after `separator`; blank ones are dropped. Returns where its first visible character is."""
        text = clean(text).strip("\n")
        if not text.strip():
            return None
        if self._length and not (self._page and self._page[1] == self._length):
            self._append(separator)
        start = self._length + len(text) - len(text.lstrip())
        self._append(text)
        return start

    def heading(self, level: int, text: str) -> None:
        """Adds a heading block; `level` 1 is the outermost."""
        start = self.block(text)
        if start is not None:
            self._headings.append(Heading(max(1, min(level, 9)), one_line(clean(text)), start))

    def mark(self, level: int, title: str, char_start: int) -> None:
        """Notes a heading whose text has already been added."""
        self._headings.append(Heading(max(1, min(level, 9)), one_line(title), char_start))

    def open_page(self, number: int) -> None:
        """Ends the page before, if any, and starts page, slide or sheet `number`, counted from 1."""
        self.close_page()
        if self._length:
            self._append("\n\n")
        self._page = (number, self._length)

    def close_page(self) -> None:
        """Ends the open page, if any."""
        if self._page:
            self._pages.append(PageSpan(self._page[0], self._page[1], self._length))
            self._page = None

    def finish(self, media_type: str, title: str | None = None) -> ExtractedText:
        """The whole document."""
        self.close_page()
        title = one_line(clean(title or "")) or None
        return ExtractedText("".join(self._parts), media_type, title, tuple(self._pages), tuple(self._headings))

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
