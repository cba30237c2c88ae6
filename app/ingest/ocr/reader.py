"""Pictures of pages to text, as many as one document may have."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.errors import TooManyScannedPages

if TYPE_CHECKING:
    from PIL import Image

DPI = 200


def _none_waits(done: int, total: int) -> None:
    return


class PageReader:
    """Reads the pages of one document, of which there may be `pages_max`; `begun(done, total)` is told of each."""

    def __init__(
        self, pages_max: int = 200, page_seconds: float = 30.0, begun: Callable[[int, int], None] = _none_waits
    ) -> None:
        self._pages_max = pages_max
        self._page_seconds = page_seconds
        self._begun = begun
        self._done = 0
        self._total = 0

    def expect(self, pages: int) -> None:
        """Says how many pages are to be read. Raises TooManyScannedPages."""
        if pages > self._pages_max:
            raise TooManyScannedPages(pages)
        self._total = pages

    def read(self, image: "Image.Image", number: int) -> str:
        """The text of page `number`, a grey picture of about 200 dpi, whichever way up; empty when none is on it.

        Raises PageNotRecognised or RecogniserMissing for text in another script, a hand, or too bad a picture;
        LimitExceeded when it takes too long; TooManyScannedPages.
        """
        # Imported when needed: most files have no pictures of pages.
        from app.ingest.ocr.page import recognised

        if self._done >= self._total:
            self.expect(self._done + 1)
        self._begun(self._done, self._total)
        self._done += 1
        return recognised(image, number, self._page_seconds)
