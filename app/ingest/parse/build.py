"""The text under construction: blocks in, one string with exact offsets out."""

import re

from app.domain.documents import ExtractedText, Heading, PageSpan, TableSpan

_NEWLINES = re.compile(r"\r\n?")
_FORBIDDEN = re.compile("[\x00\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")
_HEADER_MAX = 200


def clean(text: str) -> str:
    """The only changes made to a source's text: newlines to `\\n`, no NUL or byte order mark, no lone surrogate."""
    return _SURROGATE.sub("\ufffd", _FORBIDDEN.sub("", _NEWLINES.sub("\n", text)))


def one_line(text: str) -> str:
    """`text` with every run of whitespace as one space: how titles are shown."""
    return _SPACES.sub(" ", text).strip()


def table_span(text: str, char_start: int, char_end: int) -> TableSpan | None:
    """`text[char_start:char_end]`, a row a line and cells by tabs, as a table whose first row is its header.

    None where that row names no columns, or nothing is below it.
    """
    char_start += len(text[char_start:char_end]) - len(text[char_start:char_end].lstrip())
    header, _, rest = text[char_start:char_end].partition("\n")
    names = [name for cell in header.split("\t") if (name := one_line(cell))]
    if len(names) < 2 or not rest.strip():
        return None
    return TableSpan(char_start, char_end, " | ".join(names)[:_HEADER_MAX])


class TextBuilder:
    """Collects blocks of one document; offsets are code points of the result."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._pages: list[PageSpan] = []
        self._tables: list[tuple[int, int]] = []
        self._page: tuple[int, int] | None = None

    @property
    def length(self) -> int:
        """Code points so far."""
        return self._length

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

    def table(self, rows: str) -> None:
        """Adds a table, a row a line and cells by tabs; its first row says what the others hold."""
        since = self._length
        self.block(rows)
        self.mark_table(since)

    def mark_table(self, since: int) -> None:
        """Notes that what was added since that length is a table."""
        self._tables.append((since, self._length))

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
        text = "".join(self._parts)
        tables = (table_span(text, start, end) for start, end in self._tables)
        return ExtractedText(
            text,
            media_type,
            title,
            tuple(self._pages),
            tuple(self._headings),
            tuple(table for table in tables if table is not None),
        )

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
