"""The protocol of one run: what was asked, what came, the verdict, and room for a person's decision on the citation.

Fragments come from documents that may be hostile: every format neutralises them in its own way.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from acceptance.protocol_html import render_html

COLUMNS = (
    "question id",
    "question",
    "role",
    "collection",
    "expected outcome",
    "expected document",
    "actual outcome",
    "actual document ids",
    "chunk ids",
    "corpus version",
    "fragment",
    "citation",
    "call_id",
    "verdict",
    "decision on the citation",
)
# Everything XML 1.0 has no place for, even escaped.
_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = re.compile(r"^[\s\x00]*[=+\-@＝＋－＠]|^[\t\r\n]")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the protocol; passed when `faults` is empty. `citation` is the address of the fragment's original."""

    id: str
    question: str
    role: str
    collection: str = ""
    expected_outcome: str
    expected_document: str = ""
    actual_outcome: str = ""
    document_ids: tuple[str, ...] = ()
    chunk_ids: tuple[str, ...] = ()
    corpus_versions: tuple[str, ...] = ()
    fragment: str = ""
    citation: str = ""
    call_id: str = ""
    faults: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`pass`, or `fail` and every reason."""
        return f"fail: {'; '.join(self.faults)}" if self.faults else "pass"

    def cells(self) -> tuple[str, ...]:
        """The row in the order of `COLUMNS`; the last cell is empty, for a person."""
        return (
            self.id,
            self.question,
            self.role,
            self.collection,
            self.expected_outcome,
            self.expected_document,
            self.actual_outcome,
            "\n".join(self.document_ids),
            "\n".join(self.chunk_ids),
            "\n".join(self.corpus_versions),
            self.fragment,
            self.citation,
            self.call_id,
            self.verdict,
            "",
        )


@dataclass(frozen=True, kw_only=True)
class Head:
    """What was tested with what: `time` in UTC as ISO 8601, `suite_digest` the SHA-256 of the questions file."""

    server: str
    version: str
    protocol: str
    time: str
    suite_digest: str

    def lines(self, rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
        """Name and value of everything at the head of a protocol."""
        failed = sum(1 for row in rows if row.faults)
        return (
            ("server", self.server),
            ("server version", self.version or "not given"),
            ("MCP revision", self.protocol),
            ("time (UTC)", self.time),
            ("suite digest (SHA-256)", self.suite_digest),
            ("checks", str(len(rows))),
            ("passed", str(len(rows) - failed)),
            ("failed", str(failed)),
        )


def render_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV; a cell that a spreadsheet would take for a formula starts with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_inert(cell) for cell in row.cells()] for row in rows)
    return out.getvalue()


def render_junit(head: Head, rows: Sequence[Row]) -> str:
    """The rows as a JUnit report that build servers read."""
    failed = sum(1 for row in rows if row.faults)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="acceptance" timestamp="{_xml(head.time)}" tests="{len(rows)}" failures="{failed}">',
        "<properties>",
        *(f'<property name="{_xml(name)}" value="{_xml(value)}"/>' for name, value in head.lines(rows)),
        "</properties>",
    ]
    for row in rows:
        case = f'<testcase classname="acceptance.{_xml(row.role)}" name="{_xml(row.id)}"'
        if row.faults:
            failure = f'<failure message="{_xml(row.faults[0])}">{_xml(row.verdict)}</failure>'
            lines.append(f"{case}>{failure}</testcase>")
        else:
            lines.append(f"{case}/>")
    return "\n".join([*lines, "</testsuite>", ""])


def write_protocol(folder: Path, head: Head, rows: Sequence[Row]) -> None:
    """Write `protocol.html`, `protocol.csv` and `junit.xml` for the owner's eyes only. Raises `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    html = render_html(head.lines(rows), COLUMNS, [row.cells() for row in rows], [bool(row.faults) for row in rows])
    _write(folder / "protocol.html", html)
    # The mark at the start is what makes spreadsheets read it as UTF-8.
    _write(folder / "protocol.csv", "\ufeff" + render_csv(rows))
    _write(folder / "junit.xml", render_junit(head, rows))


def _write(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content.encode(errors="replace"))


def _inert(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))
