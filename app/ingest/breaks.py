"""Where a text may be cut: token by token, with how good each place is."""

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

TokenSpans = Callable[[str], list[tuple[int, int]]]

# The tokenizer sees pieces of this many code points: enough to be exact, too few to make it slow on one endless line.
_PIECE = 8192
# A token of more code points than this (an endless run of one unknown character) counts as several.
_MAX_TOKEN_CHARS = 32
_UNSEEN = re.compile(r"\S{1,4}")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*\Z")
_WIDE_SENTENCE_END = re.compile(r"[。！？｡][”’」』）]*\Z")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_LONGEST_END = 8
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
# Skin tones, tag characters and the vowels and finals of conjoining Hangul continue the character before them.
_CONTINUING = ((0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F), (0x1160, 0x11FF))
_FLAG_LETTERS = (0x1F1E6, 0x1F1FF)


@dataclass(slots=True)
class TokenPositions:
    """Starts and ends of the tokens of one stretch of `text`, in its code points; all else in it is blank."""

    text: str
    starts: "array[int]" = field(default_factory=lambda: array("q"))
    ends: "array[int]" = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.starts)

    def blank_before(self, index: int) -> int:
        """How many blank code points stand before a token."""
        return self.starts[index] - self.ends[index - 1]

    def starts_paragraph(self, index: int) -> bool:
        """Whether an empty line stands before the token."""
        gap = self.text[self.ends[index - 1] : self.starts[index]]
        return "\n" in gap and bool(_PARAGRAPH.search(gap))

    def starts_sentence(self, index: int) -> bool:
        """Whether a sentence or a line ends before the token."""
        end = self.ends[index - 1]
        before = self.text[max(0, end - _LONGEST_END) : end]
        if self.blank_before(index) <= 0:
            return bool(_WIDE_SENTENCE_END.search(before))
        gap = self.text[end : self.starts[index]]
        return "\n" in gap or bool(_SENTENCE_END.search(before) or _WIDE_SENTENCE_END.search(before))

    def starts_word(self, index: int) -> bool:
        """Whether a blank stands before the token."""
        return self.blank_before(index) > 0

    def starts_character(self, index: int) -> bool:
        """Whether a cut before the token leaves every character that a reader sees whole."""
        return is_character_border(self.text, self.starts[index])


def is_character_border(text: str, at: int) -> bool:
    """Whether `text` can be cut at `at` without parting a base from its marks, joiners or modifiers."""
    if at <= 0 or at >= len(text):
        return True
    char, before = text[at], text[at - 1]
    code = ord(char)
    if code < 0x300 and before != "\u200d":
        return True
    if before == "\u200d" or char in _JOINERS or unicodedata.category(char).startswith("M"):
        return False
    if _within(code, _FLAG_LETTERS):
        return _flag_letters_before(text, at) % 2 == 0
    return not any(_within(code, span) for span in _CONTINUING)


def _within(code: int, span: tuple[int, int]) -> bool:
    return span[0] <= code <= span[1]


def _flag_letters_before(text: str, at: int) -> int:
    """Flags are pairs of letters; a run of more than a few is no flag, and is not counted to its start."""
    count = 0
    while count < 64 and at - count > 0 and _within(ord(text[at - count - 1]), _FLAG_LETTERS):
        count += 1
    return count


def token_positions(text: str, start: int, end: int, token_spans: TokenSpans) -> TokenPositions:
    """The tokens of `text[start:end]`. What the tokenizer leaves out is counted too, a token for four code points."""
    found = TokenPositions(text)
    for piece_start, piece_end in _pieces(text, start, end):
        piece = text[piece_start:piece_end]
        if piece.strip():
            for token_start, token_end in _complete(piece, token_spans(piece)):
                found.starts.append(piece_start + token_start)
                found.ends.append(piece_start + token_end)
    return found


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _PIECE:
        limit = start + _PIECE
        cut = max(text.rfind("\n", start + 1, limit), text.rfind(" ", start + 1, limit))
        if cut < 0:
            cut = next((at for at in range(limit, limit - 64, -1) if is_character_border(text, at)), limit)
        yield start, cut
        start = cut
    yield start, end


def _complete(piece: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans in order, without gaps but blank ones, none of more than `_MAX_TOKEN_CHARS`; as many as tokens at least."""
    at = 0
    for raw_start, raw_end in spans:
        raw = piece[raw_start:raw_end]
        start, end = raw_start + len(raw) - len(raw.lstrip()), raw_start + len(raw.rstrip())
        if start >= end:  # a token of blanks, or of nothing: it counts, and has no place of its own
            yield at, at
            continue
        yield from _unseen(piece, at, start)
        for part in range(start, end, _MAX_TOKEN_CHARS):
            # Several tokens of one character keep its place: they count, and are never torn from it.
            yield max(part, at), max(at, min(part + _MAX_TOKEN_CHARS, end))
        at = max(at, end)
    yield from _unseen(piece, at, len(piece))


def _unseen(piece: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if start < end:
        yield from (found.span() for found in _UNSEEN.finditer(piece, start, end))
