"""Markdown: the text is the source; headings are found in it."""

import re
from collections.abc import Iterator
from itertools import chain

from app.domain.documents import ExtractedText, Heading
from app.ingest.parse.build import clean, one_line
from app.ingest.parse.encoding import decode

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(?=\S)")
_ATX_END = re.compile(r"[ \t]+#+[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
# A line that can't be the text of an underlined heading: blank, list, quote, table row, code, rule.
_NOT_A_TITLE = re.compile(r"\s*$|    |\t| {0,3}(?:[-*+>|]|\d{1,9}[.)](?:\s|$))")


def parse_markdown(data: bytes, media_type: str) -> ExtractedText:
    """The source with its ATX and setext headings; the title is the first heading of level 1."""
    text = clean(decode(data))
    headings = tuple(_headings(text))
    title = next((heading.title for heading in headings if heading.level == 1), None)
    return ExtractedText(text, media_type, title, (), headings)


def _headings(text: str) -> Iterator[Heading]:
    fence = ""
    candidate: tuple[int, str] | None = None
    for start, line in _prose(text):
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not line[opened.end() :].strip():
                fence = ""
            continue
        if opened:
            fence, candidate = opened[1], None
        elif atx := _ATX.match(line):
            title = _ATX_END.sub("", line[atx.end() :])
            if title.strip("# \t"):
                yield Heading(len(atx[1]), one_line(title), start + atx.end())
            candidate = None
        elif candidate and (underline := _UNDERLINE.match(line)):
            yield Heading(1 if underline[1][0] == "=" else 2, one_line(candidate[1]), candidate[0])
            candidate = None
        else:
            candidate = _title_line(start, line, candidate)


def _title_line(start: int, line: str, before: tuple[int, str] | None) -> tuple[int, str] | None:
    """The first line of a paragraph may be a title; later ones belong to the paragraph."""
    if _NOT_A_TITLE.match(line):
        return None
    if before:
        return before[0], f"{before[1]} {line}" if len(before[1]) < 300 else before[1]
    return start + len(line) - len(line.lstrip()), line


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its offset, without a YAML head."""
    lines = text.split("\n")
    first = 0
    if lines[0].rstrip() == "---":
        ends = (index for index, line in enumerate(lines[1:200], 1) if line.rstrip() in ("---", "..."))
        first = next(chain(ends, (-1,))) + 1
    at = 0
    for index, line in enumerate(lines):
        if index >= first:
            yield at, line
        at += len(line) + 1
