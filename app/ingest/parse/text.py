"""Plain text and CSV: the text is the file."""

import csv

from app.domain.documents import ExtractedText, TableSpan
from app.ingest.kind import Kind
from app.ingest.parse.build import clean, one_line
from app.ingest.parse.encoding import decode


def parse_text(data: bytes, media_type: str) -> ExtractedText:
    """The decoded file as it is. Raises UnreadableFile when no encoding fits."""
    text = clean(decode(data))
    header = _header(text) if media_type == Kind.CSV else None
    return ExtractedText(text, media_type, tables=() if header is None else (TableSpan(0, len(text), header),))


def _header(text: str) -> str | None:
    """The names of a CSV file's columns, where its first line is such a list."""
    first = text.partition("\n")[0]
    try:
        cells = next(csv.reader([first], csv.Sniffer().sniff(first, ",;\t|")), [])
    except csv.Error:
        return None
    names = [name for cell in cells if (name := one_line(cell))]
    return " | ".join(names)[:200] if len(names) > 1 else None
