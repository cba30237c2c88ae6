"""PDF pages that are pictures: which they are, and their text by recognition."""

import math
import unicodedata

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from app.errors import UnreadableFile
from app.ingest.ocr.reader import DPI, PageReader

_STAMP_CHARS = 100  # what a scanner, an archive or a court prints over the picture of a page
_COVERED = 0.5
_GARBAGE = 0.3
_NO_CHARACTERS = frozenset(("Cc", "Cn", "Co", "Cs"))
_MAX_PIXELS = 40_000_000
_POINTS_AN_INCH = 72


def is_scanned(page: pdfium.PdfPage, text: str) -> bool:
    """Whether what a reader sees on the page is not in its text: none, only a stamp over a picture, or garbage."""
    visible = _visible(text)
    if not visible:
        return next(page.get_objects(max_depth=1), None) is not None
    if _is_garbage(visible):
        return True
    return len(visible) < _STAMP_CHARS and _covered(page) >= _COVERED


def recognised(page: pdfium.PdfPage, number: int, text: str, reader: PageReader) -> str:
    """The page as it is seen, led by lines of its own text that are not seen there. Raises as `PageReader.read`."""
    width, height = page.get_size()
    inches = width * height / _POINTS_AN_INCH**2
    dpi = min(DPI, math.sqrt(_MAX_PIXELS / max(inches, 1.0)))
    try:
        picture = page.render(scale=dpi / _POINTS_AN_INCH, grayscale=True).to_pil().convert("L")
    except pdfium.PdfiumError as error:
        raise UnreadableFile from error
    finally:
        page.close()
    return _merged("" if _is_garbage(_visible(text)) else text, reader.read(picture, number))


def _visible(text: str) -> list[str]:
    return [char for char in text if not char.isspace()]


def _is_garbage(visible: list[str]) -> bool:
    """Whether a font without a map to Unicode has left codes in place of characters."""
    bad = sum(char == "\ufffd" or unicodedata.category(char) in _NO_CHARACTERS for char in visible)
    return bad > _GARBAGE * len(visible)


def _covered(page: pdfium.PdfPage) -> float:
    """Which part of the page pictures cover; scanners store a page whole or in strips."""
    width, height = map(float, page.get_size())
    area = 0.0
    for item in page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=1):
        left, bottom, right, top = map(float, item.get_bounds())
        area += max(0.0, min(right, width) - max(left, 0.0)) * max(0.0, min(top, height) - max(bottom, 0.0))
    return area / max(width * height, 1.0)


def _merged(text: str, seen: str) -> str:
    found = _squashed(seen)
    kept = [line for line in text.splitlines() if (letters := _squashed(line)) and letters not in found]
    return "\n".join([*kept, "", seen] if kept else [seen])


def _squashed(text: str) -> str:
    return "".join(text.split()).casefold()
