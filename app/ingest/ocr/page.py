"""One picture of a page to text: which way up it lies, and which recogniser reads it."""

from dataclasses import dataclass

from PIL import Image

from app.errors import PageNotRecognised, RecogniserMissing
from app.ingest.ocr import tesseract
from app.ingest.ocr.lines import patched, sure_share, text_of

_READ = 0.85  # of the length of all lines, by one recogniser alone
_ENOUGH = 0.5  # of the length of all lines, by both: less than that is half a page
_FEW_LINES = 4  # a stamp, a sign in a photograph: what is not legible there is no page of text
# Certainty that a page lies as it is said to: noise, blank paper and photographs are below 4, pages of text above 6.
_TURNED, _TEXT = 2.0, 5.0
_EAST_ASIAN = frozenset(("Han", "Japanese", "Hangul", "Korean", "Hiragana", "Katakana"))


@dataclass(frozen=True, slots=True)
class _Attempt:
    text: str
    share: float
    is_page_of_text: bool = True
    on_its_side: bool = False

    @property
    def failed(self) -> bool:
        """Whether there is text, and most of it was not read."""
        return self.is_page_of_text and (self.share < _ENOUGH or self.on_its_side)


def recognised(image: Image.Image, number: int, seconds: float) -> str:
    """What `PageReader.read` returns and raises; `seconds` bound each look at the page."""
    best = _best(image, seconds)
    if best.share < _READ and not {"rus", "eng"} <= tesseract.languages():
        # What is left out might be legible to what is missing.
        raise RecogniserMissing(number)
    if best.failed:
        raise PageNotRecognised(number)
    return best.text


def _best(image: Image.Image, seconds: float) -> _Attempt:
    image, laid = _upright(image)
    best = _attempt(image, laid, seconds)
    if best.failed:
        for degrees in (90, 270) if best.on_its_side else (180,):
            other = _attempt(image.rotate(degrees, expand=True), laid, seconds)
            best = max(best, other, key=lambda attempt: (not attempt.on_its_side, attempt.share))
    return best


def _attempt(image: Image.Image, laid: tesseract.Orientation | None, seconds: float) -> _Attempt:
    page = None if laid and laid.script in _EAST_ASIAN else tesseract.read(image, seconds)
    if page and page.words and (share := sure_share(page.words)) >= _READ:
        return _Attempt(page.text, share)
    # Imported when needed: it takes a quarter of a gigabyte of address space.
    from app.ingest.ocr import rapid

    lines = rapid.read(image)
    if sure_share(lines) < _READ:
        page = page or tesseract.read(image, seconds)
        lines = patched(lines, page.words if page else ())
    # Of some scripts it does not even see the lines.
    looks_like_text = len(lines) > _FEW_LINES or (laid is not None and laid.degrees_sure >= _TEXT)
    return _Attempt(text_of(lines), sure_share(lines), looks_like_text, rapid.stands_on_its_side(lines))


def _upright(image: Image.Image) -> tuple[Image.Image, tesseract.Orientation | None]:
    """The page turned to stand upright, and how it lay, as far as that can be told."""
    laid = tesseract.orientation(image)
    if laid and laid.degrees and laid.degrees_sure >= _TURNED:
        image = image.rotate(laid.degrees, expand=True)
    return image, laid
