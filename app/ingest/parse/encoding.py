"""Bytes of unknown encoding to text. Made for short texts, where statistics over whole languages fail."""

import codecs
from collections.abc import Callable
from dataclasses import dataclass

from app.errors import UnreadableFile
from app.ingest.kind import utf16_without_mark

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 20_000
_BEST, _FALL = 1.2, 0.04
_SIGNS = frozenset("«»—–“”„’‘…№§©°€£ \u200c\u200d،؟")
# The letters above ASCII of each language, most frequent first.
_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"
_LATIN = "éäöüèàùâêîôûçßñóíáúåøæãõ"
_ARABIC = "اليمونترةبدعسفهكحقجشصطخذضثءأإىئؤآغظز"
_GREEK = "αοιετσνηυρπκμλςωάόίέήγδθχβφύώξζψ"
_HEBREW = "יוהלארתבשמןםנעקדחפצגטכסזךףץ"
_HEBREW_FINALS = frozenset("םןץףך")
_CENTRAL = "áéíóúůčďěňřšťžýąćęłńśźżőű"
_TURKISH = "ışğçöüİ"
# Hanzi that make up about half of running Chinese: simplified, and the traditional forms of the same.
_HANZI = frozenset(
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经"
    "十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全"
    "表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系很情者最立代想已通并提直题程展五果料象员位"
    "這為個國時來們對會發動說產種後經進著電裡現實點從業應開還義間樣與關線數質氣變條沒結解問無員"
)
_HANGUL = frozenset("이다는을를의에가고하지도로사은한기인어아시리자대서과스나정그해일수")


@dataclass(frozen=True, slots=True)
class _SingleByte:
    """A one-byte code page, the letters above ASCII of its language, and how much less likely than others it is."""

    codec: str
    letters: str
    malus: float = 0.0


# Ties go to the earlier one.
_SINGLE_BYTE = (
    _SingleByte("cp1251", _CYRILLIC),
    _SingleByte("koi8-r", _CYRILLIC),
    _SingleByte("cp866", _CYRILLIC),
    _SingleByte("iso8859-5", _CYRILLIC),
    _SingleByte("mac-cyrillic", _CYRILLIC, 0.02),
    _SingleByte("cp1252", _LATIN),
    _SingleByte("cp1250", _CENTRAL),
    _SingleByte("cp1254", _TURKISH),
    _SingleByte("cp1256", _ARABIC),
    _SingleByte("cp1253", _GREEK),
    _SingleByte("cp1255", _HEBREW),
)


def decode(data: bytes, declared: str | None = None) -> str:
    """The text of `data`: by its byte order mark, else UTF-8, else as declared, else the likeliest old encoding.

    Raises UnreadableFile when a marked encoding is broken or nothing fits.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _strict(data, codec)
    if (codec_of_nulls := utf16_without_mark(data)) is not None:
        return _strict(data, codec_of_nulls)
    for label in ("utf-8", declared):
        if (text := _decoded(data, label)) is not None:
            return text
    return _strict(data, likeliest(data))


def likeliest(data: bytes) -> str:
    """The Python codec that makes the best sense of non-UTF-8 bytes."""
    sample = _whole_lines(data)
    best, best_score = "", float("-inf")
    for codec, score in _scores(sample):
        if score > best_score and _decoded(data, codec) is not None:
            best, best_score = codec, score
    if not best:
        raise UnreadableFile
    return best


def _strict(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeError as error:
        raise UnreadableFile from error


def _decoded(data: bytes, codec: str | None) -> str | None:
    if not codec:
        return None
    try:
        # The label of a page says Latin-1 where browsers read Windows-1252.
        return data.decode("cp1252" if codec.lower() in ("iso-8859-1", "latin-1", "latin1", "ascii") else codec)
    except (UnicodeError, LookupError):
        return None


def _whole_lines(data: bytes) -> bytes:
    if len(data) <= _SAMPLE:
        return data
    cut = data.rfind(b"\n", 0, _SAMPLE)
    return data[: cut if cut > 0 else _SAMPLE]


def _scores(sample: bytes) -> list[tuple[str, float]]:
    found = [(codec, _multi_byte(sample, codec, weight)) for codec, weight in _MULTI_BYTE]
    return found + [(page.codec, _one_byte(sample, page)) for page in _SINGLE_BYTE]


def _one_byte(sample: bytes, page: _SingleByte) -> float:
    """Mean weight of the characters above ASCII, less what is odd about their neighbours."""
    weights = {letter: _BEST - _FALL * rank for rank, letter in enumerate(page.letters)}
    is_latin = page.letters[0] < "\u0250"
    total, count, before = 0.0, 0, " "
    for char in sample.decode(page.codec, "replace"):
        if char > "\x7f":
            count += 1
            total += _weight(char, before, weights)
        # One word in two scripts: the umlaut of a German word read as Cyrillic.
        if not is_latin and char.isalpha() and before.isalpha() and (char > "\x7f") != (before > "\x7f"):
            total -= 1.0
        if before in _HEBREW_FINALS and char.isalpha():
            total -= 1.0
        before = char
    return total / max(1, count) - page.malus


def _weight(char: str, before: str, weights: dict[str, float]) -> float:
    if not char.isalpha():
        return 0.5 if char in _SIGNS else -1.0
    if not char.isupper():
        return weights.get(char, 0.0)
    # Inside a word capitals follow capitals: what turns their case round is the wrong code page.
    return -1.0 if before.islower() else 0.85 * weights.get(char.lower(), 0.0)


def _multi_byte(sample: bytes, codec: str, weight: Callable[[str], float]) -> float:
    total, count = 0.0, 0
    for char in sample.decode(codec, "replace"):
        if char > "\x7f":
            count += 1
            total += -2.0 if char == "\ufffd" else weight(char)
    return total / max(1, count)


def _chinese_weight(char: str) -> float:
    if char in _HANZI:
        return 1.4
    if "\u4e00" <= char <= "\u9fff":
        # The first level of GB 2312 holds the 3,755 characters in daily use.
        return 0.5 if b"\xb0" <= char.encode("gb18030")[:1] <= b"\xd7" else 0.2
    return 0.6 if char in "，。、；：？！“”‘’（）《》—…　" else -0.5


def _japanese_weight(char: str) -> float:
    if "\u3040" <= char <= "\u30ff":
        return 1.3
    if "\uff61" <= char <= "\uff9f":
        return -0.5
    return 0.5 if "\u3000" <= char <= "\u9fff" else -0.3


def _korean_weight(char: str) -> float:
    if "\uac00" <= char <= "\ud7a3":
        return 1.3 if char in _HANGUL else 0.8 if char.encode("cp949")[1] >= 0xA1 else -0.5
    return -0.5  # Chinese characters are rare in Korean now, and half of Chinese read as Korean


_MULTI_BYTE: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("gb18030", _chinese_weight),
    ("big5", _chinese_weight),
    ("cp932", _japanese_weight),
    ("euc-jp", _japanese_weight),
    ("cp949", _korean_weight),
)
