"""Real files of many kinds and origins, from the shared data folder, against what a right parser finds."""

import csv
import os
import re
import unicodedata
from pathlib import Path

import pytest

from app.errors import EmptyDocument, IngestError, PasswordRequired
from app.ingest.parse import parse

ROOT = Path(os.environ.get("STACKS_SHARED_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data") / "files"


def manifest() -> list[dict[str, str]]:
    if not (ROOT / "manifest.tsv").is_file():
        return []
    with (ROOT / "manifest.tsv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


ROWS = manifest()
# The manifest calls this one empty as long as nothing reads pictures; this is what is in it.
PICTURES = {"pdf/scan_image_only.pdf": "Docling bundles PDF document conversion to JSON and Markdown in an easy self"}


def squashed(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


@pytest.mark.skipif(not ROWS, reason="no shared data folder beside the repository (STACKS_SHARED_DATA)")
@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_file_becomes_what_is_expected(row: dict[str, str]) -> None:
    path = ROOT / row["file"]
    if row["file"] in PICTURES:
        row = row | {"expect": "ok", "must_contain": PICTURES[row["file"]]}
    match row["expect"]:
        case "password":
            with pytest.raises(PasswordRequired):
                parse(path.read_bytes(), path.name)
        case "empty":
            with pytest.raises(EmptyDocument):
                parse(path.read_bytes(), path.name)
        case "reject":
            with pytest.raises(IngestError):
                parse(path.read_bytes(), path.name)
        case "ok":
            check(path, row)
        case _:
            try:
                check(path, row | {"must_contain": ""})
            except IngestError as error:
                assert error.failure


def check(path: Path, row: dict[str, str]) -> None:
    extracted = parse(path.read_bytes(), path.name)
    assert squashed(row["must_contain"]) in squashed(extracted.text)
    assert not row["must_not_contain"] or row["must_not_contain"] not in extracted.text
    extracted.text.encode("utf-8")
    for heading in extracted.headings:
        assert squashed(extracted.text[heading.char_start :][:400]).startswith(squashed(heading.title)[:100])
    ends = [0, *(page.char_end for page in extracted.pages)]
    assert all(end <= page.char_start <= page.char_end for end, page in zip(ends, extracted.pages, strict=False))


@pytest.mark.skipif(not ROWS, reason="no shared data folder beside the repository (STACKS_SHARED_DATA)")
def test_password_opens_a_pdf() -> None:
    data = (ROOT / "pdf" / "aes256_r6_password.pdf").read_bytes()
    assert "Issue 6010" in parse(data, "a.pdf", password="abc").text
    with pytest.raises(PasswordRequired):
        parse(data, "a.pdf", password="wrong")
