"""The one place that calls xberg: bytes in, its document out, its faults as our errors."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import xberg

from app.errors import LimitExceeded, PasswordRequired, UnreadableFile

_MAX_ARCHIVE_BYTES = 512 * 1024 * 1024
_BODY_LAYERS = ("body", "footnote")


@dataclass(frozen=True, slots=True)
class Node:
    """One block of a document: its type, its page, slide or sheet if known, and the fields of its type."""

    node_type: str
    page: int | None
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.fields.get("text") or "")


def extract(data: bytes, media_type: str, file_name: str, password: str | None = None) -> xberg.ExtractedDocument:
    """Structure of one document, without OCR, cache, network or heuristics that drop text.

    Raises PasswordRequired, LimitExceeded (a bomb) or UnreadableFile.
    """
    source = xberg.ExtractInput(kind="bytes", bytes=data, mime_type=media_type, filename=file_name)
    try:
        result = asyncio.run(xberg.extract(source, _config(password)))
    except (xberg.XbergError, RuntimeError, ValueError) as error:
        raise _translated(str(error)) from None
    if not result.results:
        raise _translated(str(result.errors[0].message) if result.errors else "")
    return result.results[0]


def nodes(document: xberg.ExtractedDocument) -> Iterator[Node]:
    """The blocks of the body and its notes, in reading order; comments and page furniture are left out."""
    for node in document.document.nodes if document.document else ():
        fields = json.loads(str(node.content))
        if str(node.content_layer).lower() in _BODY_LAYERS and fields["node_type"] != "comment":
            yield Node(fields["node_type"], node.page, fields)


def _config(password: str | None) -> xberg.ExtractionConfig:
    return xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        escape_markdown=False,
        output_format="plain",
        include_document_structure=True,
        max_archive_depth=0,
        pages=xberg.PageConfig(extract_pages=True),
        pdf_options=xberg.PdfConfig(passwords=[password] if password else None),
        content_filter=xberg.ContentFilterConfig(
            include_headers=True, include_footers=True, include_footnotes=True, strip_repeating_text=False
        ),
        # Text compresses 100 to 1 and more; what bounds a bomb is the size it unpacks to.
        security_limits=xberg.SecurityLimits(max_compression_ratio=2000, max_archive_size=_MAX_ARCHIVE_BYTES),
    )


def _translated(message: str) -> Exception:
    """Sorts a fault by its words, which are all that xberg gives. They may quote the file: they go no further."""
    lowered = message.lower()
    if "encrypt" in lowered or "password" in lowered:
        return PasswordRequired()
    if "security limit" in lowered or "zip bomb" in lowered or "too large" in lowered:
        return LimitExceeded()
    return UnreadableFile()
