"""The arguments of a search, checked strictly: nothing is coerced, nothing unknown is dropped."""

import unicodedata
from collections.abc import Mapping
from typing import Any

from app.domain.access import SLUG
from app.domain.search import LIMIT_DEFAULT, LIMIT_MAX, QUERY_MAX, SearchRequest
from app.errors import InvalidRequest

# Letters and symbols by their category, and blank to the eye: Hangul fillers and the empty Braille cell.
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
_FIELDS = ("query", "collection", "limit")
INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": QUERY_MAX,
            "description": "What to look for, in plain words; any language.",
        },
        "collection": {
            "type": "string",
            "pattern": f"^{SLUG.pattern}$",
            "description": "Search this one collection only (its slug). Without it: all that the caller may search.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": LIMIT_MAX,
            "default": LIMIT_DEFAULT,
            "description": "How many fragments at most.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


def search_request(arguments: object) -> SearchRequest:
    """Check what a client sent. Raises `InvalidRequest` that names the first wrong field and what is allowed."""
    if not isinstance(arguments, Mapping):
        raise InvalidRequest("arguments", "not an object", allowed="an object with " + ", ".join(_FIELDS))
    for name in arguments:
        if name not in _FIELDS:
            shown = repr(str(name)[:60]).encode("ascii", "backslashreplace").decode()
            raise InvalidRequest(shown, "unknown", allowed=", ".join(_FIELDS))
    return SearchRequest(_query(arguments), _collection(arguments), _limit(arguments))


def _query(arguments: Mapping[str, Any]) -> str:
    allowed = f"a string of 1..{QUERY_MAX} characters with something visible in it"
    if "query" not in arguments:
        raise InvalidRequest("query", "missing", allowed=allowed)
    query = arguments["query"]
    if not isinstance(query, str):
        raise InvalidRequest("query", "not a string", allowed=allowed)
    if len(query) > QUERY_MAX:
        raise InvalidRequest("query", f"{len(query)} characters", allowed=allowed)
    if "\x00" in query or any("\ud800" <= character <= "\udfff" for character in query):
        raise InvalidRequest("query", "holds a NUL or half of a surrogate pair", allowed=allowed)
    if not any(map(_visible, query)):
        raise InvalidRequest("query", "nothing visible in it", allowed=allowed)
    return query


def _visible(character: str) -> bool:
    """A letter, number, punctuation mark or symbol: no blank, control or format character, and no mere filler."""
    return unicodedata.category(character)[0] in "LNPS" and character not in _FILLERS


def _collection(arguments: Mapping[str, Any]) -> str | None:
    collection = arguments.get("collection")
    if "collection" not in arguments:
        return None
    if not isinstance(collection, str) or SLUG.fullmatch(collection) is None:
        raise InvalidRequest("collection", "not a slug", allowed="1..63 of a-z, 0-9 and -, not starting with -")
    return collection


def _limit(arguments: Mapping[str, Any]) -> int:
    limit = arguments.get("limit", LIMIT_DEFAULT)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIMIT_MAX:
        raise InvalidRequest("limit", "out of range or not an integer", allowed=f"an integer, 1..{LIMIT_MAX}")
    return limit
