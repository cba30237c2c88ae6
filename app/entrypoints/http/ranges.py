"""An original over HTTP, whole or in part: `Range`, `If-Range` and `Content-Range` (RFC 9110, 13.1.5 and 14)."""

import re
from collections.abc import Mapping
from urllib.parse import quote

from litestar import Response

from app.search.reading import Original, Part

_ONE_RANGE = re.compile(r"bytes=(\d{1,18})?-(\d{1,18})?")


def wanted(headers: Mapping[str, str]) -> Part | None:
    """The part that a request asks for; None for the whole.

    Several ranges, other units and what is no range get the whole, as the specification allows.
    """
    found = _ONE_RANGE.fullmatch(headers.get("range", "").strip())
    if found is None:
        return None
    first, last = (None if number is None else int(number) for number in found.groups())
    if (first, last) == (None, None) or (first is not None and last is not None and last < first):
        return None
    only_of = headers.get("if-range")
    return Part(first, last, None if only_of is None else only_of.strip('"'))


def answer(found: Original, headers: Mapping[str, str]) -> Response[bytes]:
    """The answer with these bytes, to be saved rather than shown."""
    card = found.card
    sent = {
        **headers,
        "accept-ranges": "bytes",
        "content-disposition": f"attachment; filename*=UTF-8''{quote(card.file_name, safe='')}",
        "etag": f'"{card.content_sha256}"',
    }
    if found.is_part:
        sent["content-range"] = f"bytes {found.first}-{found.end - 1}/{card.size}"
    status = 206 if found.is_part else 200
    return Response(found.content, media_type=card.media_type, headers=sent, status_code=status)
