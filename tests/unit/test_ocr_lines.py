"""Words and lines with their boxes, put in reading order and mended by one another."""

import pytest

from app.ingest.ocr.lines import Seen, patched, sure_share, text_of
from app.ingest.ocr.tesseract import _page


def line(text: str, left: float, top: float, *, width: float = 400, sure: float = 1.0, slope: float = 0.0) -> Seen:
    return Seen(text, left, top, left + width, top + 30, sure, slope)


def test_from_top_to_bottom_and_paragraphs_apart() -> None:
    lines = [line("third", 0, 160), line("first", 0, 0), line("second", 0, 40), line("fourth", 0, 200)]
    assert text_of(lines) == "first\nsecond\n\nthird\nfourth"


def test_side_by_side_is_one_row_from_left_to_right() -> None:
    lines = [line("b", 500, 2), line("a", 0, 0), line("d", 500, 43), line("c", 0, 40)]
    assert text_of(lines) == "a b\nc d"


def test_a_page_askew_keeps_its_rows() -> None:
    slope = 0.05
    places = {"a": (0, 0), "b": (1500, 0), "c": (0, 100), "d": (1500, 100)}
    lines = [line(name, left, top + left * slope, slope=slope) for name, (left, top) in places.items()]
    assert text_of(lines) == "a b\nc d"


def test_columns_of_prose_are_read_one_after_the_other() -> None:
    left = [line(f"left column line {row}", 0, 40 * row, width=600) for row in range(8)]
    right = [line(f"right column line {row}", 700, 40 * row, width=600) for row in range(8)]
    text = text_of([one for pair in zip(left, right, strict=True) for one in pair])
    assert text.splitlines() == [one.text for one in (*left, *right)]


def test_what_is_not_certain_is_left_out_unless_another_has_read_it() -> None:
    lines = [line("sure", 0, 0), line("????", 0, 40, sure=0.2), line("", 0, 80, sure=0.0)]
    words = [line("written", 200, 42, width=150), line("hand", 10, 41, width=150), line("elsewhere", 900, 40)]
    assert text_of(lines) == "sure"
    assert text_of(patched(lines, words)) == "sure\nhand written"
    assert text_of(patched(lines, [])) == "sure"


@pytest.mark.parametrize(("sure", "share"), [((), 1.0), ((1.0, 0.0), 0.5), ((0.59, 0.1), 0.0)])
def test_how_much_was_read(sure: tuple[float, ...], share: float) -> None:
    assert sure_share([line("x", 0, 40 * row, sure=one) for row, one in enumerate(sure)]) == share


def test_lines_and_paragraphs_of_tesseract() -> None:
    rows = [
        "1\t1\t0\t0\t0\t0\t0\t0\t900\t900\t-1\t",
        "5\t1\t1\t1\t1\t1\t10\t10\t50\t20\t96.5\tOne",
        "5\t1\t1\t1\t1\t2\t70\t10\t50\t20\t90\ttwo",
        "5\t1\t1\t1\t2\t1\t10\t40\t50\t20\t90\tthree",
        "5\t1\t1\t2\t1\t1\t10\t90\t50\t20\t90\tfour",
        "5\t1\t2\t1\t1\t1\t10\t140\t50\t20\t-1\tfive",
        "5\t1\t2\t1\t1\t2\t70\t140\t50\t20\t95\t ",
    ]
    page = _page("\n".join(rows) + "\n")
    assert page.text == "One two\nthree\n\nfour\n\nfive"
    assert page.words[0] == Seen("One", 10, 10, 60, 30, 0.965)
    assert page.words[-1].sure == 0.0
