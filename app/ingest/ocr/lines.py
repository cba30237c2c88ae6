"""What a recogniser sees on a page: words or lines with their boxes and how sure it is of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from app.ingest.layout import Segment, arranged

_SURE = 0.6
_KEPT = 0.5
_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class Seen:
    """A word or a line; pixels from the upper left, `sure` 0..1, `slope` the rise of its baseline, as an angle."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    sure: float
    slope: float = 0.0

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def letters(self) -> int:
        """How many characters can be seen."""
        return len("".join(self.text.split()))

    def holds(self, other: "Seen") -> bool:
        """Whether the middle of `other` is inside."""
        x, y = (other.left + other.right) / 2, (other.top + other.bottom) / 2
        return self.left <= x <= self.right and self.top <= y <= self.bottom


def sure_share(seen: Sequence[Seen]) -> float:
    """How much of the lines' length was read with confidence, 0..1; 1 where there is nothing to read."""
    length = sum(one.width for one in seen)
    return sum(one.width for one in seen if one.sure >= _SURE) / length if length else 1.0


def patched(lines: Sequence[Seen], words: Sequence[Seen]) -> list[Seen]:
    """The lines, with another recogniser's words in place of those that were not read with confidence."""
    return [line if line.sure >= _SURE else _better(line, words) for line in lines]


def _better(line: Seen, words: Sequence[Seen]) -> Seen:
    inside = sorted((word for word in words if line.holds(word)), key=lambda word: word.left)
    letters = sum(word.letters for word in inside)
    if not letters:
        return line
    sure = sum(word.sure * word.letters for word in inside) / letters
    return replace(line, text=" ".join(word.text for word in inside), sure=sure)


def text_of(lines: Iterable[Seen]) -> str:
    """The lines that are worth keeping in reading order, column by column where there are columns."""
    kept = [line for line in lines if line.sure >= _KEPT and line.letters]
    slope = median(line.slope for line in kept) if kept else 0.0
    rows: list[list[Segment]] = []
    for segment in sorted((_levelled(line, slope) for line in kept), key=_depth):
        if rows and _beside(rows[-1], segment):
            rows[-1].append(segment)
        else:
            rows.append([segment])
    return arranged([sorted(row, key=lambda segment: segment.left) for row in rows])


def _levelled(line: Seen, slope: float) -> Segment:
    """As on a page that lies straight; upwards, as in a PDF."""
    sine, cosine = math.sin(-slope), math.cos(-slope)
    x, y = (line.left + line.right) / 2, (line.top + line.bottom) / 2
    # A sloping line's box is higher than the line.
    height = max(line.height - line.width * abs(math.tan(slope)), line.height / 4)
    x, y = x * cosine - y * sine, x * sine + y * cosine
    return Segment(line.text.strip(), x - line.width / 2, x + line.width / 2, -y - height / 2, height)


def _depth(segment: Segment) -> float:
    return -(segment.bottom + segment.height / 2)


def _beside(row: list[Segment], segment: Segment) -> bool:
    """Whether it stands in that row: side by side with the last one, and as high up."""
    last = row[-1]
    shared = min(last.bottom + last.height, segment.bottom + segment.height) - max(last.bottom, segment.bottom)
    apart = all(segment.left >= one.right - one.height or segment.right <= one.left + one.height for one in row)
    return apart and shared > _OVERLAP * min(last.height, segment.height)
