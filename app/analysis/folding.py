"""Characters before words: one spelling for what readers take for the same, in time linear in the text.

Compatibility forms (full width, ligatures), case, soft hyphens and invisible characters, dashes, accents on Latin
letters, stress marks and the Russian yo. The short i of Russian stays: it is a letter of its own there.
"""

import re
import unicodedata
from collections.abc import Iterable

_MARKS_END = 0x20000
"""No combining mark lies beyond, apart from variation selectors, which are dropped."""

_INVISIBLE = [
    *(0xAD, 0x34F, 0x61C, 0x180E, 0xFEFF),
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
]
_STRESS_MARKS = range(0x300, 0x370)
_ACCENTED_LATIN = [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]
_DASHES = [*range(0x2010, 0x2016), 0x2212, 0x5F]


def ranges(code_points: Iterable[int]) -> str:
    """The inside of a regular expression's character class that holds exactly `code_points` (ascending)."""
    spans: list[list[int]] = []
    for point in code_points:
        if spans and spans[-1][1] == point - 1:
            spans[-1][1] = point
        else:
            spans.append([point, point])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in spans)


def _bare(point: int) -> str:
    """The letters of a character without its accents."""
    return "".join(part for part in unicodedata.normalize("NFKD", chr(point)) if not unicodedata.combining(part))


# Before composing: the invisible goes, so that a mark meets its letter; the numero sign would be read as "No".
_DROPPED: dict[int, str | None] = {**dict.fromkeys(_INVISIBLE), 0x2116: " "}
_FOLDED: dict[int, str | None] = {
    **{point: _bare(point) for point in _ACCENTED_LATIN},
    **dict.fromkeys(_STRESS_MARKS),
    **dict.fromkeys(_DASHES, "-"),
    ord("ё"): "е",
}
# Composing sorts every run of marks by insertion: a long run would cost the square of its length.
_STACKED = ranges(p for p in range(_MARKS_END) if unicodedata.combining(unicodedata.normalize("NFD", chr(p))[0]))
_TOO_MANY_MARKS = re.compile(f"([{_STACKED}]{{8}})[{_STACKED}]+")

MARKS = ranges(p for p in range(_MARKS_END) if unicodedata.category(chr(p))[0] == "M")
"""Marks that belong to the word they stand in (vowel signs of Indic scripts and the like), for a character class."""


def fold(text: str) -> str:
    """`text` in the one spelling that terms are made of. Never raises."""
    visible = _TOO_MANY_MARKS.sub(r"\1", text.translate(_DROPPED))
    return unicodedata.normalize("NFKC", visible).casefold().translate(_FOLDED)
