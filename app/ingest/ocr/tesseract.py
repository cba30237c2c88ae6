"""Tesseract, where its library is installed: called inside this process, which may start no other."""

import atexit
import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from app.errors import LimitExceeded
from app.ingest.ocr.lines import Seen

if TYPE_CHECKING:
    from PIL import Image

_NAMES = ("libtesseract.5.dylib", "libtesseract.dylib") if sys.platform == "darwin" else ("libtesseract.so.5",)
_LANGUAGES = "rus+eng"
_ORIENTATION_ONLY, _AUTOMATIC = 0, 3
_WORD = 5
_DPI = 200
_POINTERS = (
    "TessBaseAPICreate",
    "TessMonitorCreate",
    "TessBaseAPIGetTsvText",
    "TessBaseAPIGetLoadedLanguagesAsVector",
)


@dataclass(frozen=True, slots=True)
class Orientation:
    """How a page lies (degrees clockwise that its top is turned to) and its script, each with its certainty."""

    degrees: int
    degrees_sure: float
    script: str


@dataclass(frozen=True, slots=True)
class Page:
    """The words of a page, and its text with its lines and paragraphs."""

    words: list[Seen]
    text: str


@cache
def _library() -> ctypes.CDLL | None:
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function in _POINTERS:
            getattr(library, function).restype = ctypes.c_void_p
        return library
    return None


def languages() -> frozenset[str]:
    """What can be read: none without the library, else those of `rus` and `eng` whose data is installed."""
    library, reader = _library(), _reader(_LANGUAGES)
    if library is None or reader is None:
        return frozenset()
    array = library.TessBaseAPIGetLoadedLanguagesAsVector(reader)
    names = ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))
    found: set[str] = set()
    while (name := names[len(found)]) is not None:
        found.add(name.decode())
    library.TessDeleteTextArray(ctypes.c_void_p(array))
    return frozenset(found)


@cache
def _reader(data: str) -> ctypes.c_void_p | None:
    """An instance with this language data; kept, since loading it costs more than a short page."""
    library = _library()
    if library is None:
        return None
    handle = ctypes.c_void_p(library.TessBaseAPICreate())
    atexit.register(library.TessBaseAPIDelete, handle)  # it complains of what is left at the end
    return handle if library.TessBaseAPIInit3(handle, None, data.encode()) == 0 else None


def orientation(image: "Image.Image") -> Orientation | None:
    """How a grey page lies and what script it is in; None when there is too little text, or nothing to tell by."""
    library, reader = _library(), _reader("osd")
    if library is None or reader is None:
        return None
    _show(library, reader, image, _ORIENTATION_ONLY)
    degrees, script = ctypes.c_int(), ctypes.c_char_p()
    sure, script_sure = ctypes.c_float(), ctypes.c_float()
    told = library.TessBaseAPIDetectOrientationScript(
        reader, ctypes.byref(degrees), ctypes.byref(sure), ctypes.byref(script), ctypes.byref(script_sure)
    )
    return Orientation(degrees.value, sure.value, (script.value or b"").decode()) if told else None


def read(image: "Image.Image", seconds: float) -> Page | None:
    """The text of a grey page; None without Tesseract. Raises LimitExceeded when it takes longer than that."""
    library, reader = _library(), _reader(_LANGUAGES)
    if library is None or reader is None:
        return None
    _show(library, reader, image, _AUTOMATIC)
    monitor = ctypes.c_void_p(library.TessMonitorCreate())
    library.TessMonitorSetDeadlineMSecs(monitor, int(seconds * 1000))
    done = library.TessBaseAPIRecognize(reader, monitor) == 0
    library.TessMonitorDelete(monitor)
    if not done:
        raise LimitExceeded
    pointer = library.TessBaseAPIGetTsvText(reader, 0)
    table = ctypes.string_at(pointer).decode("utf-8", "replace")
    library.TessDeleteText(ctypes.c_void_p(pointer))
    library.TessBaseAPIClear(reader)
    return _page(table)


def _show(library: ctypes.CDLL, reader: ctypes.c_void_p, image: "Image.Image", mode: int) -> None:
    pixels = image.tobytes()
    library.TessBaseAPISetPageSegMode(reader, mode)
    # A copy is made of the pixels.
    library.TessBaseAPISetImage(reader, pixels, image.width, image.height, 1, image.width)
    library.TessBaseAPISetSourceResolution(reader, _DPI)


def _page(table: str) -> Page:
    rows = list(_rows(table))
    lines = [
        (paragraph, " ".join(word.text for _, word in words))
        for (*paragraph, _), words in groupby(rows, key=lambda row: row[0])
    ]
    paragraphs = ["\n".join(text for _, text in group) for _, group in groupby(lines, key=lambda line: line[0])]
    return Page([word for _, word in rows], "\n\n".join(paragraphs))


def _rows(table: str) -> Iterator[tuple[tuple[int, ...], Seen]]:
    """Each word, with the numbers of its block, paragraph and line."""
    for row in table.split("\n"):
        cells = row.split("\t", 11)
        if len(cells) == 12 and cells[11].strip():
            level, *place, left, top, width, height = (int(cell) for cell in cells[:10])
            if level == _WORD:
                sure = max(0.0, float(cells[10])) / 100
                word = Seen(cells[11].strip(), left, top, left + width, top + height, sure)
                yield tuple(place[1:4]), word
