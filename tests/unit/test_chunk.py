"""Chunks: verbatim slices that together hold all of the text, cut where a reader would cut."""

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.documents import Chunk, ExtractedText, Heading, PageSpan
from app.ingest.breaks import is_character_border
from app.ingest.chunk import chunks
from app.ingest.parse.build import TextBuilder

TokenSpans = Callable[[str], list[tuple[int, int]]]
_TOKEN = re.compile(r"\s?[a-zа-я]{1,4}|[^\W_]|[^\w\s]|_", re.IGNORECASE)


def token_spans(text: str) -> list[tuple[int, int]]:
    """Like a subword tokenizer: a token may take the blank before it along, Han characters stand alone."""
    return [found.span() for found in _TOKEN.finditer(text)]


def by_character(text: str) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(len(text))]


def one_token(text: str) -> list[tuple[int, int]]:
    return [(0, len(text))]


def no_token(text: str) -> list[tuple[int, int]]:
    return []


def three_per_character(text: str) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(len(text)) for _ in range(3)]


ALPHABET = "ab .\n\n字。я\u0301\u200d👩🏽🇫#-\t \u00a0"
TEXTS = st.text(ALPHABET, max_size=400) | st.lists(
    st.sampled_from(
        ["One sentence here. ", "Слово ", "汉字没有空格。", "\n\n", "\n", "x" * 40, "e\u0301" * 9, "👨‍👩‍👧"]
    ),
    max_size=60,
).map("".join)


@st.composite
def documents(draw: st.DrawFn) -> ExtractedText:
    text = draw(TEXTS)
    places = st.integers(0, len(text))
    borders = sorted(draw(st.lists(places, max_size=8)))
    pages = tuple(
        PageSpan(number, start, end)
        for number, (start, end) in enumerate(zip(borders[::2], borders[1::2], strict=False), 1)
    )
    starts = sorted(draw(st.sets(places, max_size=6)))
    headings = tuple(Heading(draw(st.integers(1, 4)), text[at : at + 3].strip() or "H", at) for at in starts)
    return ExtractedText(text, "text/plain", None, pages, headings)


def checked(extracted: ExtractedText, spans: TokenSpans, maximum: int, overlap: int) -> list[Chunk]:
    found = list(chunks(extracted, spans, max_tokens=maximum, overlap_tokens=overlap))
    covered = bytearray(len(extracted.text))
    for number, chunk in enumerate(found):
        assert chunk.ordinal == number
        assert chunk.text == extracted.text[chunk.char_start : chunk.char_end]
        assert chunk.text
        assert chunk.text == chunk.text.strip()
        covered[chunk.char_start : chunk.char_end] = bytes([1]) * len(chunk.text)
        assert not any(chunk.char_start < page.char_start < chunk.char_end for page in real_pages(extracted))
        pages = [p.page for p in real_pages(extracted) if p.char_start <= chunk.char_start < p.char_end]
        assert chunk.page == (pages[0] if pages else None)
    assert all(covered[at] or char.isspace() for at, char in enumerate(extracted.text))
    assert [chunk.char_start for chunk in found] == sorted(chunk.char_start for chunk in found)
    return found


def real_pages(extracted: ExtractedText) -> list[PageSpan]:
    return [page for page in extracted.pages if page.char_start < page.char_end]


@settings(max_examples=300, deadline=None)
@given(
    documents(),
    st.sampled_from([token_spans, by_character, one_token, no_token, three_per_character]),
    st.integers(4, 30),
    st.data(),
)
def test_slices_cover_the_text_within_pages(
    extracted: ExtractedText, spans: TokenSpans, maximum: int, data: st.DataObject
) -> None:
    checked(extracted, spans, maximum, data.draw(st.integers(0, (maximum - 1) // 2)))


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.integers(8, 30))
def test_no_chunk_has_more_tokens_than_allowed(text: str, maximum: int) -> None:
    for chunk in chunks(ExtractedText(text, "text/plain"), token_spans, max_tokens=maximum, overlap_tokens=3):
        seen = len(token_spans(chunk.text))
        # A cut may part a token from the blank that the tokenizer took along; it adds no token.
        assert seen <= maximum


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["e\u0301", "👩🏽", "👨‍👩‍👧", "🇫🇷", "क्षि", "한", "字", "a"]), max_size=80).map("".join))
def test_no_cut_inside_a_character(text: str) -> None:
    for chunk in chunks(ExtractedText(text, "text/plain"), by_character, max_tokens=40, overlap_tokens=5):
        assert is_character_border(text, chunk.char_start)
        assert is_character_border(text, chunk.char_end)
        assert not unicodedata.category(chunk.text[0]).startswith("M")


@settings(max_examples=100, deadline=None)
@given(documents())
def test_headings_start_chunks_and_name_their_path(extracted: ExtractedText) -> None:
    starts = {heading.char_start for heading in extracted.headings}
    for chunk in chunks(extracted, token_spans, max_tokens=20, overlap_tokens=4):
        inside = [at for at in starts if chunk.char_start < at < chunk.char_end]
        before = extracted.text[chunk.char_start : max(inside, default=chunk.char_start)]
        # Only headings without text of their own may stand before another in one chunk.
        assert not inside or chunk.heading_path or not before.strip()


def parts(text: str, maximum: int = 12, overlap: int = 3, headings: tuple[Heading, ...] = ()) -> list[str]:
    extracted = ExtractedText(text, "text/plain", None, (), headings)
    return [chunk.text for chunk in checked(extracted, token_spans, maximum, overlap)]


def test_short_paragraphs_are_packed() -> None:
    assert parts("one two\n\nthree four\n\nfive six seven", 8) == ["one two\n\nthree four", "five six seven"]


def test_long_paragraph_is_cut_at_sentences_and_overlaps() -> None:
    found = parts("Aaa bbb ccc ddd. Eee fff ggg hhh. Iii. Jjj kkk lll mmm nnn.", 12, 3)
    assert found == ["Aaa bbb ccc ddd. Eee fff ggg hhh. Iii.", "Iii. Jjj kkk lll mmm nnn."]


def test_paragraphs_do_not_overlap() -> None:
    found = parts("Aaa bbb ccc ddd eee fff ggg.\n\nHhh iii jjj kkk lll mmm nnn.", 10, 4)
    assert found == ["Aaa bbb ccc ddd eee fff ggg.", "Hhh iii jjj kkk lll mmm nnn."]


def test_text_without_spaces_is_cut_at_its_stops_then_anywhere() -> None:
    assert parts("今天天气很好。我们去公园散步。", 9, 2)[0] == "今天天气很好。"
    assert all(len(part) <= 9 for part in parts("汉" * 40, 9, 2))


def test_heading_stays_with_the_text_that_follows() -> None:
    text = "# Travel\n\n## Hotels\n\nUp to 120 euro. \n\n## Trains\n\nSecond class."
    headings = (Heading(1, "Travel", 2), Heading(2, "Hotels", 13), Heading(2, "Trains", 42))
    extracted = ExtractedText(text, "text/markdown", None, (), headings)
    assert text[42:].startswith("Trains")
    found = checked(extracted, token_spans, 50, 3)
    assert [(chunk.text, chunk.heading_path) for chunk in found] == [
        ("# Travel\n\n## Hotels\n\nUp to 120 euro.", ("Travel", "Hotels")),
        ("## Trains\n\nSecond class.", ("Travel", "Trains")),
    ]


def test_long_paragraph_under_a_heading_keeps_it() -> None:
    text = "Rules of the house\n\n" + "word " * 60
    assert parts(text, 12, 3, (Heading(1, "Rules of the house", 0),))[0].startswith("Rules of the house\n\nword")


def test_page_border_is_a_chunk_border() -> None:
    extracted = ExtractedText("one two three", "application/pdf", None, (PageSpan(1, 0, 7), PageSpan(2, 7, 13)))
    assert [(c.text, c.page) for c in checked(extracted, token_spans, 50, 3)] == [("one two", 1), ("three", 2)]


@pytest.mark.parametrize(("maximum", "overlap"), [(3, 0), (10, 5), (10, -1)])
def test_limits_without_a_way_forward_are_refused(maximum: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="overlap_tokens"):
        list(chunks(ExtractedText("a", "text/plain"), token_spans, max_tokens=maximum, overlap_tokens=overlap))


@pytest.mark.parametrize("spans", [one_token, no_token])
@pytest.mark.parametrize("text", ["a" * 5_000_000, "\n" * 1_000_000 + "x", "a\u0301" * 500_000, "a\n" * 500_000])
def test_hostile_texts_give_bounded_chunks(text: str, spans: TokenSpans) -> None:
    longest = max(len(chunk.text) for chunk in chunks(ExtractedText(text, "text/plain"), spans))
    assert longest <= 220 * 33


def test_work_grows_with_the_text_not_with_its_square() -> None:
    seen = 0

    def counting(text: str) -> list[tuple[int, int]]:
        nonlocal seen
        seen += len(text)
        return by_character(text)

    text = "ab" * 50_000 + "\n" * 50_000
    assert sum(1 for _ in chunks(ExtractedText(text, "text/plain"), counting)) < 1_000
    assert seen <= len(text)


def test_rows_below_a_table_s_header_are_read_by_it() -> None:
    rows = "".join(f"bolt M{size}\t{size} mm\tshelf {size % 7}\n" for size in range(200))
    builder = TextBuilder()
    builder.heading(1, "Stock")
    builder.table("Part\tDiameter\tPlace\n" + rows)
    builder.block("Counted in spring.")
    found = list(chunks(builder.finish("text/plain"), token_spans))

    assert found[0].heading_path == ("Stock",) and "Diameter" in found[0].text
    inside = [one for one in found[1:] if "bolt" in one.text]
    assert len(inside) > 3
    assert {one.heading_path for one in inside if "Counted" not in one.text} == {("Stock", "Part | Diameter | Place")}
    assert found[-1].heading_path == ("Stock",)
