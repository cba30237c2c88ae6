"""Bytes to extracted text, by kind."""

from app.domain.documents import ExtractedText
from app.errors import EmptyDocument
from app.ingest.kind import Kind, detect
from app.ingest.ocr.reader import PageReader


def parse(
    data: bytes, file_name: str, *, password: str | None = None, reader: PageReader | None = None
) -> ExtractedText:
    """The text of one file, verbatim but for newlines, with pages and headings; offsets are code points.

    Pictures of pages are read by `reader`, which raises PageNotRecognised, RecogniserMissing and TooManyScannedPages.
    Otherwise raises UnsupportedFile, UnreadableFile, PasswordRequired, LimitExceeded, or EmptyDocument when there is
    no text. For files from outside use `process.parse_isolated`: the same, where a hostile file can do no harm.
    """
    kind = detect(data, file_name)
    extracted = _by_kind(kind, data, file_name, password, reader or PageReader())
    if not extracted.text.strip():
        raise EmptyDocument
    return extracted


def _by_kind(kind: Kind, data: bytes, file_name: str, password: str | None, reader: PageReader) -> ExtractedText:
    # Imported when needed: a process parses one file, and its start should cost no more than that file needs.
    match kind:
        case Kind.PDF:
            from app.ingest.parse.pdf import parse_pdf

            return parse_pdf(data, kind.value, password, reader)
        case Kind.DOCX:
            from app.ingest.parse.docx import parse_docx

            return parse_docx(data, kind.value)
        case Kind.HTML:
            from app.ingest.parse.html import parse_html

            return parse_html(data, kind.value)
        case Kind.MARKDOWN:
            from app.ingest.parse.markdown import parse_markdown

            return parse_markdown(data, kind.value)
        case Kind.EML:
            from app.ingest.parse.mail import parse_mail

            return parse_mail(data, kind.value)
        case Kind.PNG | Kind.JPEG | Kind.TIFF | Kind.WEBP | Kind.BMP | Kind.GIF:
            from app.ingest.parse.image import parse_image

            return parse_image(data, kind.value, reader)
        case Kind.TXT | Kind.CSV:
            from app.ingest.parse.text import parse_text

            return parse_text(data, kind.value)
        case _:
            from app.ingest.parse.office import parse_office

            return parse_office(data, kind.value, file_name, password)
