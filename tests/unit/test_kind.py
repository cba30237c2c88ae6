"""The kind of a file is told by its bytes, whatever it is called."""

import io
import zipfile

import pytest

from app.errors import EmptyDocument, IngestError, PasswordRequired, UnreadableFile, UnsupportedFile
from app.ingest.kind import Kind, detect

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
JPEG_2000 = b"\x00\x00\x00\x0cjP  \r\n\x87\n\x00\x00\x00\x14ftypjp2 \x00\x00\x00\x00jp2 "
MAIL = b"From: a@example.org\nTo: b@example.org\nSubject: Hello\nMessage-ID: <1@example.org>\n\nText\n"


def zipped(*names: str, mimetype: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype)
        for name in names:
            archive.writestr(name, "<x/>")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (b"%PDF-1.7\n1 0 obj", "a.txt", Kind.PDF),
        (b"\n\n%PDF-1.4", "a", Kind.PDF),
        (zipped("[Content_Types].xml", "word/document.xml"), "a.pdf", Kind.DOCX),
        (zipped("[Content_Types].xml", "ppt/presentation.xml"), "a.doc", Kind.PPTX),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "a", Kind.XLSX),
        (zipped("content.xml", mimetype=Kind.ODT), "a.zip", Kind.ODT),
        (zipped("c.opf", mimetype=Kind.EPUB), "a.zip", Kind.EPUB),
        (b"{\\rtf1 hello}", "a.doc", Kind.RTF),
        (OLE + "WordDocument".encode("utf-16-le"), "a.docx", Kind.DOC),
        (b"<!DOCTYPE html><p>x", "a.pdf", Kind.HTML),
        (b"<?xml version='1.0'?>\n<!-- note -->\n<html><body>x", "a.txt", Kind.HTML),
        ("\ufeff<html><body>текст".encode("utf-16"), "a.txt", Kind.HTML),
        (b"<p>a fragment</p>", "a.html", Kind.HTML),
        (b"<p>a fragment</p>", "a.txt", Kind.TXT),
        (b"no tag at all", "a.html", Kind.TXT),
        (b"# Title", "a.md", Kind.MARKDOWN),
        (b"# Title", "a.txt", Kind.TXT),
        (b"a,b\n1,2", "a.csv", Kind.CSV),
        (MAIL, "a.eml", Kind.EML),
        (MAIL, "saved message", Kind.EML),
        (b"From bounce@example.org Mon\n" + MAIL, "a.eml", Kind.EML),
        (MAIL, "a.txt", Kind.TXT),
        (b"To: whom it may concern\n\nText", "letter", Kind.TXT),
        ("Привет, мир".encode("cp1251"), "a", Kind.TXT),
        ("Привет, мир".encode("utf-16-le"), "a", Kind.TXT),
        (b"Mentions %PDF-1.4 in passing", "a.txt", Kind.TXT),
    ],
)
def test_kind_follows_the_content(data: bytes, name: str, kind: Kind) -> None:
    assert detect(data, name) is kind


@pytest.mark.parametrize(
    ("data", "name", "error"),
    [
        (JPEG_2000, "a.txt", UnsupportedFile),
        (b"\x7fELF" + bytes(200), "a.pdf", UnsupportedFile),
        (zipped("readme.txt"), "a.docx", UnsupportedFile),
        (OLE, "a.doc", UnsupportedFile),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "a.docx", PasswordRequired),
        (zipped("[Content_Types].xml", "word/document.xml")[:60], "a.docx", UnreadableFile),
        (b"", "a.txt", EmptyDocument),
        (b"", "a.pdf", UnreadableFile),
    ],
)
def test_what_is_not_read_has_its_own_error(data: bytes, name: str, error: type[IngestError]) -> None:
    with pytest.raises(error) as caught:
        detect(data, name)
    assert name not in caught.value.message
