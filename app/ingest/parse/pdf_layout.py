"""The text of one PDF page in reading order, from PDFium's characters and their boxes."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

# What PDFium reports for a hyphen at a line's end that it took out of a word, together with the line break.
_LINE_END_HYPHENS = (0x02, 0xFFFE)
_NEWLINES = (0x0A, 0x0D)
_GAP_IN_HEIGHTS = 0.9
_PARAGRAPH_PITCH = 1.3
_MIN_SPLIT_LINES = 6
_MIN_COLUMN_FILL = 0.6
_MIN_COLUMN_TEXT = 12


@dataclass(slots=True)
class Segment:
    """A run of characters on one line without a wide gap; coordinates in points from the lower left."""

    text: str
    left: float
    right: float
    bottom: float
    height: float

    @property
    def width(self) -> float:
        return self.right - self.left


_Line = list[Segment]


def page_text(page: pdfium.PdfPage) -> str:
    """All text of the page; columns drawn row by row are read column by column; paragraphs are set off by a blank line.

    Raises pdfium.PdfiumError when the page's text can't be read.
    """
    textpage = page.get_textpage()
    try:
        lines = list(_lines(textpage))
    finally:
        textpage.close()
    gutter = _gutter(lines)
    if gutter is not None:
        lines = list(_by_column(lines, gutter))
    return _joined(lines)


def _lines(textpage: pdfium.PdfTextPage) -> Iterator[_Line]:
    line: _Line = []
    box = pdfium_c.FS_RECTF()
    gap = False
    for index in range(textpage.count_chars()):
        code = pdfium_c.FPDFText_GetUnicode(textpage, index)
        if code in _NEWLINES or code in _LINE_END_HYPHENS:
            if code in _LINE_END_HYPHENS and line:
                line[-1].text += "-"
            if line:
                yield line
            line = []
            continue
        pdfium_c.FPDFText_GetLooseCharBox(textpage, index, ctypes.byref(box))
        char = chr(code)
        if char.isspace():
            gap = bool(line)
        elif line and not _is_apart(line[-1], box):
            _extend(line[-1], (" " if gap else "") + char, box)
            gap = False
        else:
            line.append(Segment(char, box.left, box.right, box.bottom, box.top - box.bottom))
            gap = False
    if line:
        yield line


def _is_apart(segment: Segment, box: pdfium_c.FS_RECTF) -> bool:
    """Whether the next character stands a column's distance away, to either side."""
    reach = _GAP_IN_HEIGHTS * max(segment.height, 1.0)
    return bool(box.left - segment.right > reach or segment.left - box.right > reach)


def _extend(segment: Segment, text: str, box: pdfium_c.FS_RECTF) -> None:
    segment.text += text
    segment.left = min(segment.left, box.left)
    segment.right = max(segment.right, box.right)


def _gutter(lines: list[_Line]) -> float | None:
    """The middle of the gap between two columns of prose whose lines were drawn side by side, else None.

    Prose fills its column; the rows of a table do not, and stay rows.
    """
    split = [line for line in lines if len(line) == 2 and all(len(s.text) >= _MIN_COLUMN_TEXT for s in line)]
    if len(split) < max(_MIN_SPLIT_LINES, len(lines) // 3):
        return None
    left, right = [min(line, key=_left) for line in split], [max(line, key=_left) for line in split]
    edge, start = max(s.right for s in left), min(s.left for s in right)
    widths = (edge - min(s.left for s in left), max(s.right for s in right) - start)
    filled = min(
        sum(s.width for s in side) / len(side) / max(w, 1.0) for side, w in zip((left, right), widths, strict=True)
    )
    return (edge + start) / 2 if start > edge and filled >= _MIN_COLUMN_FILL else None


def _left(segment: Segment) -> float:
    return segment.left


def _by_column(lines: list[_Line], gutter: float) -> Iterator[_Line]:
    """Left column, then right, between the lines that run across both."""
    left: list[_Line] = []
    right: list[_Line] = []
    for line in lines:
        if any(s.left < gutter < s.right for s in line):
            yield from (*left, *right, line)
            left, right = [], []
            continue
        for segment in line:
            (left if segment.right <= gutter else right).append([segment])
    yield from (*left, *right)


def _joined(lines: list[_Line]) -> str:
    pitches = [pitch for above, below in pairwise(lines) if (pitch := _pitch(above, below)) > 1]
    wide = _PARAGRAPH_PITCH * median(pitches) if pitches else float("inf")
    parts: list[str] = []
    for index, line in enumerate(lines):
        if index:
            parts.append("\n\n" if _pitch(lines[index - 1], line) > wide else "\n")
        parts.append(" ".join(segment.text for segment in line))
    return "".join(parts)


def _pitch(above: _Line, below: _Line) -> float:
    return above[0].bottom - below[0].bottom
