"""Extracted text to chunks: by page, heading, paragraph, sentence, word, and only then by token."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from app.domain.documents import Chunk, ExtractedText, Heading, TableSpan
from app.ingest.breaks import TokenPositions, TokenSpans, token_positions

MAX_TOKENS = 220
OVERLAP_TOKENS = 32
# A chunk is not stretched over more blank space than this, in code points.
_MAX_BLANK = 200
_MARKUP = re.compile(r"(?:#+[^\S\n]*)?\Z")
_MAX_MARKUP = 16
_BODY = re.compile(r"[^\s#=\-_*]")


@dataclass(frozen=True, slots=True)
class _Section:
    """Text of one page under one heading; the text after the heading starts at or after `body`."""

    start: int
    end: int
    body: int
    page: int | None
    path: tuple[str, ...]


def chunks(
    extracted: ExtractedText,
    token_spans: TokenSpans,
    *,
    max_tokens: int = MAX_TOKENS,
    overlap_tokens: int = OVERLAP_TOKENS,
) -> Iterator[Chunk]:
    """The chunks in order, at most `max_tokens` each; together they hold every visible character of the text.

    `token_spans` gives the code point spans of the tokens of the string passed to it. Only parts of a paragraph too
    long for one chunk overlap, by at most `overlap_tokens`. Raises ValueError for limits that leave no way forward.
    """
    if not 0 <= 2 * overlap_tokens < max_tokens or max_tokens < 4:
        raise ValueError("max_tokens must be at least 4, and overlap_tokens below half of it")
    ordinal = 0
    text, tables = extracted.text, deque(extracted.tables)
    for section in _joined(_sections(extracted), text):
        tokens = token_positions(text, section.start, section.end, token_spans)
        for start, end in _spans(tokens, section, max_tokens, overlap_tokens):
            piece = text[start:end]
            start += len(piece) - len(piece.lstrip())
            if piece := piece.strip():
                path = section.path + _table_header(tables, start, start + len(piece))
                yield Chunk(ordinal, start, start + len(piece), piece, section.page, path)
                ordinal += 1


def _table_header(tables: deque[TableSpan], start: int, end: int) -> tuple[str, ...]:
    """What a person reads rows by, for a chunk that begins below the header of the table it lies in.

    `tables` are in order, and those that end before `start` are dropped: the chunks come in order too.
    """
    while tables and tables[0].char_end <= start:
        tables.popleft()
    inside = bool(tables) and tables[0].char_start < start and end <= tables[0].char_end
    return (tables[0].header,) if inside else ()


def _sections(extracted: ExtractedText) -> Iterator[_Section]:
    """The text cut at every page border and heading, without what is blank."""
    text = extracted.text
    headings = {_with_markup(text, heading): heading for heading in extracted.headings}
    page_at = {page.char_start: page.page for page in extracted.pages if page.char_start < page.char_end}
    page_ends = {page.char_end for page in extracted.pages}
    borders = sorted({0, len(text), *headings, *page_at, *page_ends})
    path: list[Heading] = []
    page: int | None = None
    for start, end in pairwise(borders):
        page = page_at.get(start, None if start in page_ends else page)
        body = start
        if heading := headings.get(start):
            while path and path[-1].level >= heading.level:
                path.pop()
            path.append(heading)
            body = min(end, heading.char_start + len(heading.title))
        if text[start:end].strip():
            yield _Section(start, end, body, page, tuple(entry.title for entry in path))


def _with_markup(text: str, heading: Heading) -> int:
    """Where the heading begins, its markup (`## `) included if the source has any."""
    before = text[max(0, heading.char_start - _MAX_MARKUP) : heading.char_start]
    found = _MARKUP.search(before)
    return heading.char_start - (len(before) - found.start() if found else 0)


def _joined(sections: Iterator[_Section], text: str) -> Iterator[_Section]:
    """A heading with no text of its own goes with the first section below it, if that is on the same page."""
    held: _Section | None = None
    for section in sections:
        if held and _is_below(section, held):
            section = replace(section, start=held.start)
        elif held:
            yield held
        held = section
        if section.body == section.start or _BODY.search(text, section.body, section.end):
            yield section
            held = None
    if held:
        yield held


def _is_below(section: _Section, heading: _Section) -> bool:
    same_page = section.start == heading.end and section.page == heading.page
    return same_page and section.path[: len(heading.path)] == heading.path != section.path


def _spans(tokens: TokenPositions, section: _Section, max_tokens: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Chunk after chunk; what lies between the last token of one and the first of the next goes to the earlier."""
    first, start = 0, section.start
    while first < len(tokens):
        cut, is_whole = _cut(tokens, first, max_tokens, overlap, section.body)
        yield start, tokens.starts[cut] if cut < len(tokens) else section.end
        first = cut if is_whole else _overlap_start(tokens, max(first + 1, cut - overlap), cut)
        start = tokens.starts[first] if first < len(tokens) else section.end


def _cut(tokens: TokenPositions, first: int, max_tokens: int, overlap: int, body: int) -> tuple[int, bool]:
    """The token before which to cut, and whether a paragraph ends there: the latest of the best kind of place."""
    last = min(first + max_tokens, len(tokens))
    blank = (at for at in range(first + 1, last) if tokens.blank_before(at) > _MAX_BLANK and tokens.ends[at - 1] > body)
    if (at := next(blank, None)) is not None:
        return at, True
    if last == len(tokens):
        return last, True
    # Not a crumb, and not a heading alone; beyond the overlap, or there would be no way forward.
    for at in range(last, first + max(max_tokens // 4, overlap), -1):
        if tokens.starts_paragraph(at) and tokens.ends[at - 1] > body and tokens.starts_character(at):
            return at, True
    for is_good in (tokens.starts_sentence, tokens.starts_word, tokens.starts_character):
        for at in range(last, first + max(max_tokens // 2, overlap), -1):
            if is_good(at) and tokens.starts_character(at):
                return at, False
    return last, False


def _overlap_start(tokens: TokenPositions, lowest: int, cut: int) -> int:
    """Where the next part of a split paragraph begins: the first sentence, else word, of what may be repeated."""
    begin = next((at for at in range(cut, lowest, -1) if tokens.starts_paragraph(at)), lowest)
    for is_good in (tokens.starts_sentence, tokens.starts_word, tokens.starts_character):
        for at in range(begin, cut):
            if is_good(at) and tokens.starts_character(at):
                return at
    return cut
