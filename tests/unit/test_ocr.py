"""Scanned pages to text: three languages, lying any way, mixed with pages of text, and what cannot be read."""

import itertools
from collections.abc import Iterator
from io import BytesIO

import pytest
from fpdf import FPDF
from PIL import Image
from support.scans import encoded, error_rate, page, source

from app.errors import EmptyDocument, LimitExceeded, PageNotRecognised, RecogniserMissing, TooManyScannedPages
from app.ingest.holding import PagesRead
from app.ingest.ocr import tesseract
from app.ingest.ocr.reader import PageReader
from app.ingest.parse import parse
from app.ingest.parse.process import ParserLimits, parse_isolated

SMALL = (1654, 700)
ENGLISH = "The laboratory keeps its records for seven years. Nobody may remove a record without a note in the journal."
RUSSIAN = "Лаборатория хранит свои записи семь лет. Никто не вправе изъять запись без отметки в журнале учёта. " * 3
needs_tesseract = pytest.mark.skipif(
    not {"rus", "eng"} <= tesseract.languages(), reason="Tesseract with Russian and English is not installed"
)


@pytest.fixture
def without_tesseract(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def forget() -> None:
        tesseract._library.cache_clear()
        tesseract._reader.cache_clear()

    monkeypatch.setattr(tesseract, "_NAMES", ())
    forget()
    yield
    monkeypatch.undo()
    forget()


def pdf(*pages: str | Image.Image, stamp: str = "") -> bytes:
    document = FPDF()
    document.set_font("helvetica", size=12)
    for one in pages:
        document.add_page()
        if isinstance(one, str):
            document.multi_cell(0, text=one)
            continue
        document.image(BytesIO(encoded(one)), x=0, y=0, w=document.w)
        document.text(20, 290, stamp)
    return bytes(document.output())


@needs_tesseract
@pytest.mark.parametrize("name", ["remote-work.md", "vacation-rules.md", "attendance.md"])
def test_a_scanned_page_is_read_in_the_parser_process(name: str) -> None:
    image, truth = page(source(name))
    extracted = parse_isolated(encoded(image), "scan.png")
    assert error_rate(truth, extracted.text) < 0.05
    assert extracted.media_type == "image/png"
    assert [(one.page, one.char_start, one.char_end) for one in extracted.pages] == [(1, 0, len(extracted.text))]


@needs_tesseract
def test_three_languages_on_one_page() -> None:
    image = Image.new("L", (1654, 2339), 245)
    for number, name in enumerate(("attendance.md", "vacation-rules.md", "remote-work.md")):
        strip, _ = page(source(name, 400), size=(1654, 760), skew=0)
        image.paste(strip, (0, number * 770))
    found = parse(encoded(image), "scan.png").text
    assert found.startswith("考勤")
    assert found.index("考勤") < found.index("отпуск") < found.index("Remote")


@needs_tesseract
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_that_lies_on_its_side_or_head(degrees: int) -> None:
    image, truth = page(source("remote-work.md", 700), size=(1654, 1300))
    turned = image.rotate(degrees, expand=True)
    assert error_rate(truth, parse(encoded(turned), "scan.png").text) < 0.05


def test_a_pdf_keeps_its_text_where_it_has_some() -> None:
    image, truth = page(source("remote-work.md"))
    extracted = parse(pdf("First page, as text.", image, "Third page, as text."), "mixed.pdf")
    first, second, third = (extracted.text[one.char_start : one.char_end] for one in extracted.pages)
    assert (first, third) == ("First page, as text.", "Third page, as text.")
    assert error_rate(truth, second) < 0.05


def test_a_stamp_over_a_picture_is_kept_and_does_not_hide_it() -> None:
    image, truth = page(source("remote-work.md", 600))
    found = parse(pdf(image, stamp="Exhibit 000123-4"), "stamped.pdf").text
    assert "Exhibit 000123-4" in found
    assert error_rate(truth, found.replace("Exhibit 000123-4", "")) < 0.05


@needs_tesseract
def test_how_far_the_reading_is() -> None:
    image, _ = page(ENGLISH, size=SMALL)
    told: list[tuple[int, int]] = []
    data = pdf(*itertools.repeat(image, 4))
    extracted = parse_isolated(data, "a.pdf", read=lambda done, total: told.append((done, total)))
    assert told == [(done, 4) for done in range(4)]
    assert len(extracted.pages) == 4
    assert all("laboratory" in extracted.text[one.char_start : one.char_end] for one in extracted.pages)


def test_more_pages_than_are_read_in_one_file() -> None:
    data = pdf("text", *itertools.repeat(Image.new("L", (60, 80), 200), 4))
    with pytest.raises(TooManyScannedPages, match=r"^4 or more pages.*STACKS_OCR_PAGES_MAX"):
        parse_isolated(data, "a.pdf", limits=ParserLimits(ocr_pages=3))


def test_too_little_memory_is_said_to_be_that() -> None:
    image, _ = page(source("attendance.md"))
    with pytest.raises(LimitExceeded):
        parse_isolated(encoded(image), "a.png", limits=ParserLimits(memory_bytes=700 << 20))


def test_blank_paper_is_empty() -> None:
    with pytest.raises(EmptyDocument):
        parse(encoded(page("", size=SMALL)[0]), "blank.png")


@needs_tesseract
def test_a_script_that_is_not_read_here_fails_the_document() -> None:
    words = "Οι κανόνες αυτοί ισχύουν για όλους όσοι εργάζονται στο εργαστήριο και διαβάζονται. "
    greek, _ = page(words * 6, size=SMALL)
    with pytest.raises(PageNotRecognised, match=r"^Page 2 is a picture of text"):
        parse_isolated(pdf("A page of text.", greek), "mixed.pdf")


@pytest.mark.usefixtures("without_tesseract")
def test_without_tesseract_cyrillic_is_refused_by_name() -> None:
    image, _ = page(RUSSIAN, size=SMALL)
    with pytest.raises(RecogniserMissing, match=r"^Page 1 .*Tesseract"):
        parse(encoded(image), "scan.png")


@pytest.mark.usefixtures("without_tesseract")
@pytest.mark.parametrize(("name", "degrees"), [("remote-work.md", 0), ("attendance.md", 270)])
def test_without_tesseract_other_print_is_read(name: str, degrees: int) -> None:
    image, truth = page(source(name, 500), size=(1654, 1300))
    found = parse(encoded(image.rotate(degrees, expand=True)), "scan.png").text
    assert error_rate(truth, found) < 0.05


def test_each_page_is_told_of_before_it_is_read() -> None:
    told: list[tuple[int, int]] = []
    reader = PageReader(pages_max=1, begun=lambda done, total: told.append((done, total)))
    reader.read(Image.new("L", (60, 80), 255), 1)
    with pytest.raises(TooManyScannedPages):
        reader.read(Image.new("L", (60, 80), 255), 2)
    assert told == [(0, 1)]


def test_progress_of_a_parse_follows_the_pages() -> None:
    progress = PagesRead(0.4, lambda seconds: seconds / 100)
    assert progress(2.0) == 0.02
    progress.tell(1, 4)
    assert progress(90.0) == 0.1
    progress.tell(9, 4)
    assert progress(90.0) == 0.4
