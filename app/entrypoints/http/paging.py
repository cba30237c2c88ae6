"""Pages by cursor: opaque to the client, just the key of the last item to us."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

from app.errors import InvalidRequest

T = TypeVar("T")
K = TypeVar("K")

LIMIT_DEFAULT = 50
LIMIT_MAX = 200
KEY_MAX = 200
NO_UUID = UUID(int=0)


class Page(msgspec.Struct, Generic[T]):
    """One page of a list; `next_cursor` is null on the last."""

    items: list[T]
    next_cursor: str | None


def limit_of(limit: int) -> int:
    """Check a page size. Raises `InvalidRequest`."""
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidRequest("limit", "out of range", allowed=f"1..{LIMIT_MAX}")
    return limit


def after(cursor: str | None, key: Callable[[str], K], first: K) -> K:
    """The key that a cursor stands for; `first` without one. Raises `InvalidRequest` for one we never gave."""
    if cursor is None:
        return first
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
        if "\x00" in text or len(text) > KEY_MAX:
            raise ValueError
        return key(text)
    except (ValueError, binascii.Error) as error:
        raise InvalidRequest("cursor", "not one of ours", allowed="next_cursor of an earlier page") from error


def page(items: Sequence[T], limit: int, key: Callable[[T], Any]) -> Page[T]:
    """Make a page of at most `limit` from items that were read with one more than that."""
    shown = list(items[:limit])
    more = len(items) > limit
    cursor = base64.urlsafe_b64encode(str(key(shown[-1])).encode()).decode() if more else None
    return Page(shown, cursor)
