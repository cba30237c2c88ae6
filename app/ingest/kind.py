"""What a file is, told by its bytes. The name only decides between kinds of plain text."""

import io
import re
import zipfile
import zlib
from enum import StrEnum
from pathlib import PurePath

from app.errors import EmptyDocument, PasswordRequired, UnreadableFile, UnsupportedFile


class Kind(StrEnum):
    """The kinds that are read here; the value is the media type that is stored and served."""

    TXT = "text/plain"
    MARKDOWN = "text/markdown"
    CSV = "text/csv"
    HTML = "text/html"
    EML = "message/rfc822"
    PDF = "application/pdf"
    RTF = "application/rtf"
    DOC = "application/msword"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    ODT = "application/vnd.oasis.opendocument.text"
    ODS = "application/vnd.oasis.opendocument.spreadsheet"
    ODP = "application/vnd.oasis.opendocument.presentation"
    EPUB = "application/epub+zip"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"
    WEBP = "image/webp"
    BMP = "image/bmp"
    GIF = "image/gif"


_HEAD = 65536
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_TEXT_BY_SUFFIX = {
    ".md": Kind.MARKDOWN,
    ".markdown": Kind.MARKDOWN,
    ".csv": Kind.CSV,
    ".tsv": Kind.CSV,
    ".html": Kind.HTML,
    ".htm": Kind.HTML,
    ".xhtml": Kind.HTML,
}
# A file of no bytes claims a kind only by its name: empty text is empty, an empty PDF is damaged.
_BINARY_SUFFIXES = frozenset(
    (".pdf", ".doc", ".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".odt", ".ods", ".odp", ".epub", ".rtf")
) | frozenset((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif"))
_IMAGE_STARTS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), Kind.PNG),
    (re.compile(rb"\xff\xd8\xff"), Kind.JPEG),
    (re.compile(rb"II[*+]\x00|MM\x00[*+]"), Kind.TIFF),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), Kind.WEBP),
    # Text may begin with these two letters; a header's length does not look like it.
    (re.compile(rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\x00\x00\x00", re.DOTALL), Kind.BMP),
    (re.compile(rb"GIF8[79]a"), Kind.GIF),
)
_OOXML_FOLDERS = (("word/", Kind.DOCX), ("ppt/", Kind.PPTX), ("xl/", Kind.XLSX))
_BY_MIMETYPE_MEMBER = {str(kind).encode(): kind for kind in (Kind.ODT, Kind.ODS, Kind.ODP, Kind.EPUB)} | {
    f"{kind}-template".encode(): kind for kind in (Kind.ODT, Kind.ODS, Kind.ODP)
}
_HTML_START = re.compile(
    r"(?:\s|<\?xml[^>]*>|<!--(?:(?!-->).){0,4000}-->)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_HTML_TAG = re.compile(
    r"</?(?:p|div|h[1-6]|table|ul|ol|li|span|title|meta|br|a|b|i|script|style)\b[^<]*>", re.IGNORECASE
)
_HEADER_LINE = re.compile(r"([!-9;-~]{1,60}):[ \t]?.*\n(?:[ \t]+\S.*\n)*")
_MAIL_HEADERS = frozenset(("from", "to", "subject", "date", "cc", "reply-to", "content-type"))
_TRANSPORT_HEADERS = frozenset(("received", "message-id", "mime-version", "return-path", "delivered-to"))


def detect(data: bytes, file_name: str) -> Kind:
    """The kind of `data`.

    Raises UnsupportedFile for what is not read here, PasswordRequired for an encrypted office file, UnreadableFile
    for a container that does not open, EmptyDocument for no bytes at all.
    """
    suffix = PurePath(file_name).suffix.lower()
    if not data:
        raise UnreadableFile() if suffix in _BINARY_SUFFIXES else EmptyDocument()
    if data.startswith(_OLE_MAGIC):
        return _ole_kind(data)
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(data)
    if _is_pdf(data):
        return Kind.PDF
    if data.lstrip()[:5] == b"{\\rtf":
        return Kind.RTF
    for start, kind in _IMAGE_STARTS:
        if start.match(data):
            return kind
    if not looks_like_text(data):
        raise UnsupportedFile()
    return _text_kind(_head_text(data), suffix)


def looks_like_text(data: bytes) -> bool:
    """Whether the bytes could be text in some encoding: marked Unicode, or nearly free of control bytes."""
    sample = data[:_HEAD]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or utf16_without_mark(sample):
        return True
    controls = sum(sample.count(bytes((code,))) for code in (*range(9), *range(14, 27), *range(28, 32)))
    return controls * 100 <= len(sample)


def utf16_without_mark(data: bytes) -> str | None:
    """`utf-16-le` or `utf-16-be` when every second byte is as low as the number of an alphabet's block, else None."""
    sample = data[:_HEAD]
    half = len(sample) // 2
    if half == 0 or len(data) % 2:
        return None
    even, odd = _low_bytes(sample[0::2]), _low_bytes(sample[1::2])
    if odd * 10 > half * 9 and even * 10 < half:
        return "utf-16-le"
    if even * 10 > half * 9 and odd * 10 < half:
        return "utf-16-be"
    return None


def _low_bytes(sample: bytes) -> int:
    """How many bytes are below 7: Latin, Greek, Cyrillic, Hebrew and Arabic characters have such a high byte."""
    return sum(sample.count(bytes((code,))) for code in range(7))


def _ole_kind(data: bytes) -> Kind:
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise PasswordRequired
    if "WordDocument".encode("utf-16-le") in data:
        return Kind.DOC
    raise UnsupportedFile


def _zip_kind(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            if "mimetype" in names:
                with archive.open("mimetype") as member:
                    kind = _BY_MIMETYPE_MEMBER.get(member.read(100).strip())
                return _known(kind)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error) as error:
        raise UnreadableFile from error
    if "[Content_Types].xml" not in names:
        raise UnsupportedFile
    return _known(next((kind for folder, kind in _OOXML_FOLDERS if any(n.startswith(folder) for n in names)), None))


def _known(kind: Kind | None) -> Kind:
    if kind is None:
        raise UnsupportedFile
    return kind


def _is_pdf(data: bytes) -> bool:
    at = data.find(b"%PDF-", 0, 1024)
    # Junk before the header is common; text that merely mentions it has no objects.
    return at >= 0 and (not data[:at].strip(b"\x00\t\n\f\r \xef\xbb\xbf") or b" obj" in data)


def _head_text(data: bytes) -> str:
    sample = data[:_HEAD]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return sample.decode("utf-16", "replace").lstrip("\ufeff")
    encoding = utf16_without_mark(sample) or "utf-8-sig"
    return sample.decode(encoding, "replace").lstrip("\ufeff")


def _text_kind(head: str, suffix: str) -> Kind:
    if _HTML_START.match(head):
        return Kind.HTML
    named = _TEXT_BY_SUFFIX.get(suffix, Kind.TXT)
    if named is Kind.HTML:
        return Kind.HTML if _HTML_TAG.search(head) else Kind.TXT
    if suffix not in (".txt", ".md", ".csv") and _is_mail(head, suffix):
        return Kind.EML
    return named


def _is_mail(head: str, suffix: str) -> bool:
    names: set[str] = set()
    at = 0
    head = head.replace("\r\n", "\n")
    if head.startswith("From "):  # the line that sets off messages in a mailbox file
        at = head.find("\n") + 1
    while (line := _HEADER_LINE.match(head, at)) and len(names) < 40:
        names.add(line[1].lower())
        at = line.end()
    if suffix == ".eml":
        return bool(names & (_MAIL_HEADERS | _TRANSPORT_HEADERS))
    return bool(names & _MAIL_HEADERS) and bool(names & _TRANSPORT_HEADERS)
