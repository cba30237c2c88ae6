"""Plain text and CSV: the text is the file."""

from app.domain.documents import ExtractedText
from app.ingest.parse.build import clean
from app.ingest.parse.encoding import decode


def parse_text(data: bytes, media_type: str) -> ExtractedText:
    """The decoded file as it is. Raises UnreadableFile when no encoding fits."""
    return ExtractedText(clean(decode(data)), media_type)
