"""Pictures of pages: PNG, JPEG, TIFF with any number of pages, WebP, BMP, and the first picture of a GIF."""

import struct
import warnings
import zlib
from io import BytesIO

import numpy as np
from PIL import Image, ImageOps

from app.domain.documents import ExtractedText
from app.errors import LimitExceeded, UnreadableFile
from app.ingest.ocr.reader import PageReader
from app.ingest.parse.build import TextBuilder

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
_MAX_PIXELS = 100_000_000  # A3 at 600 dpi has 70 million
_LONG_SIDE = 5000  # pixels; more only slows the reading down
_FAULTS = (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, IndexError, struct.error, zlib.error)


def parse_image(data: bytes, media_type: str, reader: PageReader) -> ExtractedText:
    """The text on each page, as `PageReader.read` finds it, which says what that raises.

    Raises UnreadableFile for a picture that is damaged or cut off, LimitExceeded for one of too many pixels.
    """
    builder = TextBuilder()
    with _opened(data) as image:
        count = _pages(image, media_type)
        reader.expect(count)
        for number in range(1, count + 1):
            builder.open_page(number)
            builder.block(reader.read(_page(image, number), number))
    return builder.finish(media_type)


def _opened(data: bytes) -> Image.Image:
    """Reads no more than the header; what it says is checked before a pixel is unpacked."""
    Image.MAX_IMAGE_PIXELS = _MAX_PIXELS
    try:
        with warnings.catch_warnings(action="ignore"):  # at the limit there is a warning, at twice the limit an error
            return Image.open(BytesIO(data), formats=_FORMATS)
    except Image.DecompressionBombError:
        raise LimitExceeded from None
    except _FAULTS as error:
        raise UnreadableFile from error


def _pages(image: Image.Image, media_type: str) -> int:
    """A TIFF has pages; the other kinds at most move."""
    try:
        return int(getattr(image, "n_frames", 1)) if media_type == "image/tiff" else 1
    except _FAULTS as error:
        raise UnreadableFile from error


def _page(image: Image.Image, number: int) -> Image.Image:
    """One page as a grey picture on white, the way up that its camera noted."""
    try:
        image.seek(number - 1)
        if image.width * image.height > _MAX_PIXELS:
            raise LimitExceeded
        image.load()
        page = _grey(ImageOps.exif_transpose(image))
    except _FAULTS as error:
        raise UnreadableFile from error
    page.thumbnail((_LONG_SIDE, _LONG_SIDE))
    return page


def _grey(image: Image.Image) -> Image.Image:
    if image.mode.startswith(("I", "F")):  # sixteen bits and more, which a plain conversion would cut off at 255
        pixels = np.asarray(image, dtype=np.float32)
        low, span = pixels.min(), max(float(np.ptp(pixels)), 1.0)
        return Image.fromarray(((pixels - low) * (255 / span)).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("L")
    return image.convert("L")
