"""Hostile document text stays text in every format of the protocol."""

import csv
import io
import stat
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from acceptance.protocol import COLUMNS, Head, Row, render_csv, render_junit, write_protocol

HEAD = Head(
    server="http://127.0.0.1:1",
    version='stacks <1> & "x"',
    protocol="2026-07-28",
    time="2026-11-30T12:00:00+00:00",
    suite_digest="d" * 64,
)
HOSTILE = [
    '<script>alert(1)</script><img src=x onerror="alert(2)">',
    "</dd></dl></article><h1>All passed</h1>",
    "\"' onmouseover='x' ]]> <!-- -->",
    "nul\x00 bell\x07 escape\x1b[2J \ud800 \uffff \u202eevil",
    "$head ${rows} %s {0}",
    "文件 документ 😀",
]


def row(text: str = "x", *faults: str) -> Row:
    return Row(
        id=f"q {text}",
        question=text,
        role=text,
        collection=text,
        expected_outcome="ok",
        expected_document=text,
        actual_outcome=text,
        document_ids=(text, "b"),
        chunk_ids=(text,),
        corpus_versions=(text,),
        fragment=text,
        citation=text,
        call_id=text,
        faults=faults,
    )


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def page(tmp_path: Path) -> Elements:
    write_protocol(tmp_path, HEAD, [row(text, text) for text in HOSTILE] + [row()])
    return Elements((tmp_path / "protocol.html").read_text(encoding="utf-8"))


def test_html_shows_hostile_text_and_runs_none(page: Elements) -> None:
    assert not {"script", "img", "a", "link", "iframe"} & set(page.tags)
    assert page.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert page.tags.count("h1") == 1
    assert page.tags.count("article") == len(HOSTILE) + 1
    for text in HOSTILE:
        assert text.startswith("nul") or text in page.text


def test_html_has_the_head_and_room_for_a_person(page: Elements) -> None:
    for value in (HEAD.server, HEAD.version, HEAD.suite_digest, HEAD.time, "Name", "Date", "Signature", *COLUMNS[1:]):
        assert value in page.text


def test_html_decision_cells_are_empty(tmp_path: Path) -> None:
    write_protocol(tmp_path, HEAD, [row()])
    assert '<dd class="decision"></dd>' in (tmp_path / "protocol.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "formula",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "\n-1", "＝1", "\x00=1", '=HYPERLINK("http://x")'],
)
def test_csv_cells_are_never_formulas(formula: str) -> None:
    lines = list(csv.reader(io.StringIO(render_csv([row(formula, formula)]), newline="")))
    assert lines[1][1] == f"'{formula}"
    assert not any(cell.lstrip(" \t\r\n\x00")[:1] in tuple("=+-@＝") for line in lines for cell in line if cell)


def test_csv_keeps_one_record_a_row_whatever_the_text(tmp_path: Path) -> None:
    texts = [*HOSTILE[:3], 'a,"b"\r\nc;d', *HOSTILE[4:]]
    write_protocol(tmp_path, HEAD, [row(text) for text in texts])
    raw = (tmp_path / "protocol.csv").read_bytes().decode("utf-8-sig")
    lines = list(csv.reader(io.StringIO(raw, newline="")))
    assert tuple(lines[0]) == COLUMNS
    assert [line[10].removeprefix("'") for line in lines[1:]] == texts
    assert {line[-1] for line in lines[1:]} == {""}


def test_junit_is_well_formed_and_counts() -> None:
    rows = [row(text, f"because {text}") for text in HOSTILE] + [row()]
    suite = ElementTree.fromstring(render_junit(HEAD, rows).encode(errors="replace"))
    assert (suite.get("tests"), suite.get("failures")) == ("7", "6")
    cases = suite.findall("testcase")
    assert [case.find("failure") is not None for case in cases] == [True] * 6 + [False]
    assert HOSTILE[0] in (cases[0].find("failure").text or "")  # type: ignore[union-attr]
    assert {item.get("name"): item.get("value") for item in suite.iter("property")}["failed"] == "6"


def test_every_reason_is_in_the_verdict() -> None:
    assert row("x").verdict == "pass"
    assert row("x", "one", "two").verdict == "fail: one; two"


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    write_protocol(folder, HEAD, [row()])
    assert sorted(path.name for path in folder.iterdir()) == ["junit.xml", "protocol.csv", "protocol.html"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
