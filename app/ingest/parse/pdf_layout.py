"""The lines of one PDF page, from PDFium's characters and their boxes."""

import ctypes
from collections.abc import Iterator

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from app.ingest.layout import Line, Segment, arranged

# What PDFium reports for a hyphen at a line's end that it took out of a word, together with the line break.
_LINE_END_HYPHENS = (0x02, 0xFFFE)
_NEWLINES = (0x0A, 0x0D)
_GAP_IN_HEIGHTS = 0.9


def page_text(page: pdfium.PdfPage) -> str:
    """All text of the page; columns drawn row by row are read column by column; paragraphs are set off by a blank line.

    Raises pdfium.PdfiumError when the page's text can't be read.
    """
    textpage = page.get_textpage()
    try:
        lines = list(_lines(textpage))
    finally:
        textpage.close()
    return arranged(lines)


def _lines(textpage: pdfium.PdfTextPage) -> Iterator[Line]:
    line: Line = []
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
