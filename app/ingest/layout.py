"""Lines of a page to text in reading order: columns, rows and paragraphs, by where the lines stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

_PARAGRAPH_PITCH = 1.3
_MIN_SPLIT_LINES = 6
_MIN_COLUMN_FILL = 0.6
_MIN_COLUMN_TEXT = 12


@dataclass(slots=True)
class Segment:
    """A run of characters on one line without a wide gap; coordinates in points from the lower left."""

    text: str
    left: float
    right: float
    bottom: float
    height: float

    @property
    def width(self) -> float:
        return self.right - self.left


Line = list[Segment]


def arranged(lines: list[Line]) -> str:
    """The lines, as they were drawn or found from top to bottom, as text in reading order."""
    gutter = _gutter(lines)
    if gutter is not None:
        lines = list(_by_column(lines, gutter))
    return _joined(lines)


def _gutter(lines: list[Line]) -> float | None:
    """The middle of the gap between two columns of prose whose lines were drawn side by side, else None.

    Prose fills its column; the rows of a table do not, and stay rows.
    """
    split = [line for line in lines if len(line) == 2 and all(len(s.text) >= _MIN_COLUMN_TEXT for s in line)]
    if len(split) < max(_MIN_SPLIT_LINES, len(lines) // 3):
        return None
    left, right = [min(line, key=_left) for line in split], [max(line, key=_left) for line in split]
    edge, start = max(s.right for s in left), min(s.left for s in right)
    widths = (edge - min(s.left for s in left), max(s.right for s in right) - start)
    filled = min(
        sum(s.width for s in side) / len(side) / max(w, 1.0) for side, w in zip((left, right), widths, strict=True)
    )
    return (edge + start) / 2 if start > edge and filled >= _MIN_COLUMN_FILL else None


def _left(segment: Segment) -> float:
    return segment.left


def _by_column(lines: list[Line], gutter: float) -> Iterator[Line]:
    """Left column, then right, between the lines that run across both."""
    left: list[Line] = []
    right: list[Line] = []
    for line in lines:
        if any(s.left < gutter < s.right for s in line):
            yield from (*left, *right, line)
            left, right = [], []
            continue
        for segment in line:
            (left if segment.right <= gutter else right).append([segment])
    yield from (*left, *right)


def _joined(lines: list[Line]) -> str:
    pitches = [pitch for above, below in pairwise(lines) if (pitch := _pitch(above, below)) > 1]
    wide = _PARAGRAPH_PITCH * median(pitches) if pitches else float("inf")
    parts: list[str] = []
    for index, line in enumerate(lines):
        if index:
            parts.append("\n\n" if _pitch(lines[index - 1], line) > wide else "\n")
        parts.append(" ".join(segment.text for segment in line))
    return "".join(parts)


def _pitch(above: Line, below: Line) -> float:
    return above[0].bottom - below[0].bottom
