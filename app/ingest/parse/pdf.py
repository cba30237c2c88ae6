"""PDF: text and pages by PDFium, scanned ones by recognition; headings and form values by xberg, placed into it."""

import re
from collections import defaultdict
from dataclasses import dataclass, field

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from app.domain.documents import ExtractedText
from app.errors import IngestError, PasswordRequired, UnreadableFile
from app.ingest.ocr.reader import PageReader
from app.ingest.parse.build import TextBuilder, clean
from app.ingest.parse.extractor import extract, nodes
from app.ingest.parse.pdf_layout import page_text
from app.ingest.parse.pdf_scan import is_scanned, recognised

_TAIL = 65536
_LINEARIZED = re.compile(rb"/Linearized\b[^>]{0,300}?/L\s+(\d{1,12})\b")
_MAX_HEADING = 200
_NO_TITLES = frozenset(("(anonymous)", "untitled", "(unspecified)"))


@dataclass(slots=True)
class _Structure:
    """What is known of each page besides its text, by page number from 1."""

    headings: dict[int, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    fields: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))


def parse_pdf(data: bytes, media_type: str, password: str | None, reader: PageReader) -> ExtractedText:
    """Text with one span for each page; a page that is broken is empty, unless all are.

    Raises PasswordRequired, UnreadableFile for a file that is cut off, does not open or has no readable page, and for
    scanned pages what PageReader raises.
    """
    _refuse_cut_off(data)
    document = _opened(data, password)
    try:
        if len(document) == 0:
            raise UnreadableFile
        pages = _page_texts(document, reader)
        title = document.get_metadata_value("Title")
    finally:
        document.close()
    structure = _structure(data, media_type, password)
    if structure is None and not any(pages):
        raise UnreadableFile
    return _built(pages, structure or _Structure(), media_type, None if title.lower() in _NO_TITLES else title)


def _refuse_cut_off(data: bytes) -> None:
    """A PDF without its end opens in part, and a document must never be taken by half."""
    linearized = _LINEARIZED.search(data[:2048])
    if b"%%EOF" not in data[-_TAIL:] or (linearized and int(linearized[1]) > len(data)):
        raise UnreadableFile


def _opened(data: bytes, password: str | None) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(data, password=password)
    except pdfium.PdfiumError as error:
        if error.err_code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise PasswordRequired from None
        raise UnreadableFile from error


def _page_texts(document: pdfium.PdfDocument, reader: PageReader) -> list[str]:
    texts: list[str] = []
    broken = 0
    scanned: list[int] = []
    for index in range(len(document)):
        try:
            page = document[index]
            texts.append(clean(page_text(page)).strip())
            if is_scanned(page, texts[-1]):
                scanned.append(index)
            page.close()
        except pdfium.PdfiumError:
            texts[index:] = [""]
            broken += 1
    if broken == len(texts):
        raise UnreadableFile
    reader.expect(len(scanned))
    for index in scanned:
        texts[index] = clean(recognised(document[index], index + 1, texts[index], reader)).strip()
    return texts


def _structure(data: bytes, media_type: str, password: str | None) -> _Structure | None:
    """None when xberg does not get through the file: text that PDFium has read stands without it."""
    structure = _Structure()
    try:
        document = extract(data, media_type, "document.pdf", password)
    except IngestError:
        return None
    for node in nodes(document):
        if node.node_type == "heading" and node.page and len(node.text) <= _MAX_HEADING:
            structure.headings[node.page].append((int(node.fields["level"]), node.text))
    for form_field in document.form_fields:
        if form_field.value and form_field.value.strip():
            structure.fields[form_field.page or 1].append(f"{form_field.full_name}: {form_field.value}")
    return structure


def _built(pages: list[str], structure: _Structure, media_type: str, title: str | None) -> ExtractedText:
    builder = TextBuilder()
    for number, text in enumerate(pages, 1):
        builder.open_page(number)
        start = builder.block(text)
        if start is not None:
            _mark_headings(builder, text, start, structure.headings[number])
        missing = [line for line in structure.fields[number] if line.rpartition(": ")[2] not in text]
        builder.block("\n".join(missing))
    return builder.finish(media_type, title)


def _mark_headings(builder: TextBuilder, text: str, offset: int, headings: list[tuple[int, str]]) -> None:
    """Finds each heading as whole lines of the page, however its spaces were set; what is not found is left out."""
    at = 0
    for level, title in headings:
        letters = r"\s*".join(map(re.escape, re.sub(r"\s", "", title)))
        found = re.compile(rf"^\s*({letters})\s*$", re.MULTILINE).search(text, at)
        if found and found[1]:
            builder.mark(level, found[1], offset + found.start(1))
            at = found.end()
