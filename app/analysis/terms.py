"""Text to terms for lexical search: the same analysis for documents and queries, in time linear in the text.

Words are folded and stemmed (Russian by script, English for Latin), Chinese and Japanese runs become the words a
segmenter finds and all pairs of neighbours, and codes such as `6.0.5(1)` or `AB-1234/5` count whole and in parts.
No word is dropped as too common: the ranking's statistics see to that.
"""

import re
import threading
from collections.abc import Iterator
from hashlib import blake2b

import rjieba
import snowballstemmer

from app.analysis.folding import MARKS, fold

LONGEST_TERM = 64
TERM_LIMIT = 1_000_000_000
"""Term ids are below it: also the largest dimension that a sparse vector may have in pgvector."""

_IDEOGRAPHS = (
    "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han and kana
)
_RUNS = re.compile(f"([{_IDEOGRAPHS}]+)")
_WORD = rf"[\w{MARKS}]+"
# What may join the parts of one code: each must stand between two words, a comma only between digits.
_CODE = re.compile(rf"{_WORD}(?:(?:[-./:(+]|\)[-./:(]?|(?<=\d),(?=\d)){_WORD})*")
_PARTS = re.compile(_WORD)
_LETTERS_OR_DIGITS = re.compile(rf"\d+|[^\W\d{MARKS}][^\W\d]*(?:[{MARKS}]+[^\W\d]*)*|[{MARKS}]+")
_DIGIT = re.compile(r"\d")
_CYRILLIC = re.compile("[\u0400-\u04ff]+")
_LATIN = re.compile("[a-z]+")
_SEGMENT = 1000
"""Ideographs handed to the segmenter at once."""

_stemmers = threading.local()  # a stemmer keeps the word it works on in itself: one for each thread


def document_terms(text: str) -> list[int]:
    """Term ids of a document's text, each as often as it occurs; 0 <= id < TERM_LIMIT, the same in every process."""
    return [_identify(term) for term in _terms(fold(text), alone=True)]


def query_terms(text: str) -> list[int]:
    """Distinct term ids of a query, in order of first appearance; all are terms of the same text as a document.

    A single ideograph inside a longer run is left out: there it is a function word or a torn word, and would make
    random characters look like a match.
    """
    return list(dict.fromkeys(_identify(term) for term in _terms(fold(text), alone=False)))


def analyse(text: str) -> Iterator[str]:
    """The readable terms of a document, at most 64 characters each. Never raises."""
    return _terms(fold(text), alone=True)


def _terms(folded: str, *, alone: bool) -> Iterator[str]:
    stems: dict[str, str] = {}  # lives for one text: a longer memory would tell by its speed what others have written
    for number, run in enumerate(_RUNS.split(folded)):
        yield from _ideographic_terms(run, alone) if number % 2 else _word_terms(run, stems)


def _word_terms(run: str, stems: dict[str, str]) -> Iterator[str]:
    for match in _CODE.finditer(run):
        code = match.group()
        first_digit = _DIGIT.search(code)
        if first_digit:
            yield from _whole_codes(code, first_digit.start())
        for part in _PARTS.findall(code):
            yield _stem(part, stems)
            if first_digit and _DIGIT.search(part) and not part.isdigit():
                yield from (_stem(piece, stems) for piece in _LETTERS_OR_DIGITS.findall(part))


def _whole_codes(code: str, first_digit: int) -> Iterator[str]:
    """The code if it has several parts, and again from its first part with a digit if others lead it."""
    parts = list(_PARTS.finditer(code[: first_digit + LONGEST_TERM + 1]))
    if len(parts) < 2:
        return
    yield _closed(code)
    numeric = [part for part in parts if part.end() > first_digit]
    if numeric[0].start() > 0 and len(numeric) > 1:
        yield _closed(code[numeric[0].start() :])


def _closed(code: str) -> str:
    cut = code[:LONGEST_TERM]
    return cut + ")" if cut.count("(") > cut.count(")") and len(cut) < LONGEST_TERM else cut


def _ideographic_terms(run: str, alone: bool) -> Iterator[str]:
    for start in range(0, len(run), _SEGMENT):
        for word in rjieba.cut_for_search(run[start : start + _SEGMENT]):
            # Words of two are among the pairs below, and would count twice.
            if len(word) > 2 or (len(word) == 1 and (alone or len(run) == 1)):
                yield word[:LONGEST_TERM]
    for place in range(len(run) - 1):
        yield run[place : place + 2]


def _stem(word: str, stems: dict[str, str]) -> str:
    known = stems.get(word)
    if known is None:
        cut = word[:LONGEST_TERM]
        if _CYRILLIC.fullmatch(cut):
            known = _stemmer("russian").stemWord(cut)
        elif _LATIN.fullmatch(cut):
            known = _stemmer("english").stemWord(cut)
        else:
            known = cut
        stems[word] = known
    return known


def _stemmer(language: str) -> "snowballstemmer.basestemmer.BaseStemmer":
    found = getattr(_stemmers, language, None)
    if found is None:
        found = snowballstemmer.stemmer(language)
        setattr(_stemmers, language, found)
    return found


def _identify(term: str) -> int:
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % TERM_LIMIT
