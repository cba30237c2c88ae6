"""PDF: exact page spans, reading order, headings in place; never half a document."""

import pytest

from app.errors import EmptyDocument, UnreadableFile
from app.ingest.parse import parse

Placed = tuple[float, float, int, str]


def pdf(*pages: list[Placed]) -> bytes:
    """A PDF whose pages show each text at x, y in a size, drawn in the given order."""
    objects: list[bytes] = []
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects.append(b"<< /Type /Catalog /Pages 2 0 R >>")
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for index, page in enumerate(pages):
        drawn = "\n".join(f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET" for x, y, size, text in page).encode()
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * index} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(out)


def lines(x: float, top: float, texts: list[str]) -> list[Placed]:
    return [(x, top - 14 * index, 10, text) for index, text in enumerate(texts)]


def test_pages_are_spans_of_the_text() -> None:
    extracted = parse(pdf(lines(40, 800, ["First page"]), [], lines(40, 800, ["Third page", "goes on"])), "a")
    spans = [(span.page, extracted.text[span.char_start : span.char_end]) for span in extracted.pages]
    assert spans == [(1, "First page"), (2, ""), (3, "Third page\ngoes on")]
    assert extracted.media_type == "application/pdf"


def test_headings_point_at_their_lines() -> None:
    body = [f"Body line {index} says something about hotels and their limits in cities" for index in range(12)]
    page = [(40.0, 790.0, 22, "Travel policy"), *lines(40, 750, body)]
    second = [(40.0, 790.0, 22, "Exceptions"), *lines(40, 750, body)]
    extracted = parse(pdf(page, second), "a")
    assert [heading.title for heading in extracted.headings] == ["Travel policy", "Exceptions"]
    for heading in extracted.headings:
        assert extracted.text[heading.char_start :].startswith(heading.title)
        assert extracted.text[: heading.char_start].rpartition("\n")[2] == ""


def test_columns_drawn_row_by_row_are_read_column_by_column() -> None:
    left = [f"Left column line {index:02} has quite some words" for index in range(20)]
    right = [f"Right column line {index:02} has other words too" for index in range(20)]
    rows = [placed for pair in zip(lines(40, 760, left), lines(320, 760, right), strict=True) for placed in pair]
    title = "A line of text that runs across both of the columns of the page and then some more"
    text = parse(pdf([(40, 800, 12, title), *rows]), "a").text
    assert text.startswith(title)
    assert "\n".join(left) in text
    assert "\n".join(right) in text


def test_table_rows_stay_rows() -> None:
    names = [f"Employee {index:02}" for index in range(20)]
    rows = [
        placed
        for index, name in enumerate(names)
        for placed in ((40.0, 780.0 - 14 * index, 10, name), (400.0, 780.0 - 14 * index, 10, f"{index}00.00"))
    ]
    text = parse(pdf(rows), "a").text
    assert all(f"{name} {index}00.00" in text for index, name in enumerate(names))


def test_wide_gap_starts_a_paragraph() -> None:
    placed = [*lines(40, 800, ["one", "two", "three"]), *lines(40, 730, ["four", "five", "six"])]
    assert parse(pdf(placed), "a").text == "one\ntwo\nthree\n\nfour\nfive\nsix"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.99])
def test_cut_off_file_is_refused(share: float) -> None:
    data = pdf(*(lines(40, 800, [f"page {number}"]) for number in range(20)))
    with pytest.raises(UnreadableFile):
        parse(data[: int(len(data) * share)], "a.pdf")


def test_page_without_text_is_empty() -> None:
    with pytest.raises(EmptyDocument):
        parse(pdf([]), "a.pdf")
