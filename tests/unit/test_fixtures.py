"""The fixture corpus holds what its manifest and its questions say, before any server is asked."""

import asyncio
import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
import xberg

from acceptance.questions import Question, load_suite
from app.ingest.parse import parse

FIXTURES = Path(__file__).parents[2] / "fixtures"
MEDIA_TYPES = {
    ".html": "text/html",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}
HAN, CYRILLIC = re.compile("[\u4e00-\u9fff]"), re.compile("[\u0400-\u04ff]")
PRINCIPALS = ("general", "restricted", "owner", "auditor", "tester", "admin")
BUILT_IN_ROLES = ("administrator", "collection-creator", "auditor", "tester")

MANIFEST: dict[str, list[dict[str, Any]]] = tomllib.loads((FIXTURES / "corpus.toml").read_text(encoding="utf-8"))
DOCUMENTS = MANIFEST["documents"]
QUESTIONS = load_suite(FIXTURES / "questions.toml").questions
NEWEST = {document["source_id"]: document["edition"] for document in DOCUMENTS}


@cache
def independent_text(path: str) -> str:
    """What a file says without this project's parsers: plain text decoded, the others through xberg."""
    file = FIXTURES / path
    if file.suffix not in MEDIA_TYPES:
        return file.read_text(encoding="utf-8")
    source = xberg.ExtractInput(kind="bytes", bytes=file.read_bytes(), mime_type=MEDIA_TYPES[file.suffix])
    config = xberg.ExtractionConfig(use_cache=False, disable_ocr=True, escape_markdown=False)
    return str(asyncio.run(xberg.extract(source, config)).results[0].content)


@cache
def pdf_pages(path: str) -> tuple[str, ...]:
    """The text of each page, by pypdfium2."""
    with pypdfium2.PdfDocument(FIXTURES / path) as document:
        return tuple(page.get_textpage().get_text_bounded() for page in document)


@cache
def texts(path: str) -> tuple[str, ...]:
    """The file's text as every extractor at hand gives it: the appliance's own comes first."""
    own = parse((FIXTURES / path).read_bytes(), Path(path).name).text
    others = ("\n".join(pdf_pages(path)),) if path.endswith(".pdf") else ()
    return (own, independent_text(path), *others)


def language(document: dict[str, Any]) -> str:
    """By script, since the corpus has one language for each."""
    text = independent_text(document["path"])
    if len(HAN.findall(text)) > 300:
        return "zh"
    return "ru" if len(CYRILLIC.findall(text)) > 300 else "en"


def plain(text: str) -> str:
    """As the acceptance suite compares what must never appear: without case, width and line breaks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def may_search(principal: str, document: dict[str, Any]) -> bool:
    """The grants of the manifest and those of owners, read in the plainest way: some allow and no deny."""
    if any(c["slug"] == document["collection"] and c["owner"] == principal for c in MANIFEST["collections"]):
        return True
    roles = next(p["roles"] for p in MANIFEST["principals"] if p["name"] == principal)
    effects = {
        grant["effect"]
        for grant in MANIFEST["grants"]
        if grant["role"] in roles
        and grant["action"] == "search"
        and grant["collection"] == document["collection"]
        and grant.get("label") in (None, *document["labels"])
    }
    return effects == {"allow"}


def is_visible(question: Question, document: dict[str, Any]) -> bool:
    """Whether this edition may be quoted in the answer to the question."""
    newest = NEWEST[document["source_id"]] == document["edition"]
    named = question.collection in (None, document["collection"])
    return newest and named and may_search(question.role, document)


def everything_said(document: dict[str, Any]) -> str:
    """Title, collection title and text, made comparable."""
    shelf = next(c["title"] for c in MANIFEST["collections"] if c["slug"] == document["collection"])
    return plain("\n".join((document["title"], shelf, *texts(document["path"]))))


def wanted_document(question: Question) -> dict[str, Any]:
    edition = question.edition or NEWEST[question.document or ""]
    found = [d for d in DOCUMENTS if (d["source_id"], d["edition"]) == (question.document, edition)]
    assert len(found) == 1, question.id
    return found[0]


def test_manifest_names_only_what_exists() -> None:
    roles = {role["name"] for role in MANIFEST["roles"]} | set(BUILT_IN_ROLES)
    slugs = {collection["slug"] for collection in MANIFEST["collections"]}
    assert tuple(p["name"] for p in MANIFEST["principals"]) == PRINCIPALS
    assert all(set(p["roles"]) <= roles for p in MANIFEST["principals"])
    assert {collection["owner"] for collection in MANIFEST["collections"]} <= set(PRINCIPALS)
    assert {grant["collection"] for grant in MANIFEST["grants"]} <= slugs
    assert {grant["role"] for grant in MANIFEST["grants"]} <= roles
    assert {document["collection"] for document in DOCUMENTS} <= slugs


def test_every_corpus_file_is_listed_once() -> None:
    listed = [document["path"] for document in DOCUMENTS]
    on_disk = [str(p.relative_to(FIXTURES)) for p in (FIXTURES / "corpus").rglob("*") if p.is_file()]
    assert sorted(listed) == sorted(on_disk)
    assert all(f"corpus/{document['collection']}/" in document["path"] for document in DOCUMENTS)
    assert sum(p.stat().st_size for p in FIXTURES.rglob("*") if p.is_file()) < 2_000_000


def test_editions_count_up_in_the_order_of_publishing() -> None:
    editions: dict[str, list[int]] = defaultdict(list)
    for document in DOCUMENTS:
        editions[document["source_id"]].append(document["edition"])
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in editions.values())
    assert [source for source, numbers in editions.items() if len(numbers) > 1] == ["travel-policy"]


def test_the_two_editions_differ_in_one_condition() -> None:
    old, new = (texts(d["path"])[0].splitlines() for d in DOCUMENTS if d["source_id"] == "travel-policy")
    changed = [line for line, other in zip(old, new, strict=True) if line != other]
    assert len(changed) == 2  # the line that names the edition, and the hotel limit
    assert "120 EUR a night" in changed[1]


def test_languages_and_kinds() -> None:
    sources = {document["source_id"]: document for document in DOCUMENTS}.values()
    languages = Counter(map(language, sources))
    kinds: dict[str, set[str]] = defaultdict(set)
    for document in sources:
        kinds[language(document)].add(Path(document["path"]).suffix)
    assert len(sources) >= 14
    assert set(languages) == {"en", "ru", "zh"}
    assert min(languages.values()) >= 4
    assert all(len(found) >= 3 for found in kinds.values())
    by_kind = Counter(Path(document["path"]).suffix for document in sources)
    assert set(by_kind) == {".txt", ".md", ".html", ".docx", ".pdf"}
    assert min(by_kind.values()) >= 2


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: Path(d["path"]).name)
def test_documents_have_substance(document: dict[str, Any]) -> None:
    for text in texts(document["path"]):
        size = len(HAN.findall(text)) / 1.5 if language(document) == "zh" else len(text.split())
        assert 400 <= size <= 1500
    if document["path"].endswith(".pdf"):
        assert len(pdf_pages(document["path"])) >= 2


def test_no_address_outside_the_reserved_domains() -> None:
    for document in DOCUMENTS:
        addresses = re.findall(r"[\w.+-]+@[\w-]+\.[\w.-]*\w", independent_text(document["path"]))
        assert all(address.endswith("@example.com") for address in addresses), document["path"]


def test_rights_are_the_two_role_ones() -> None:
    seen = {name: {d["source_id"] for d in DOCUMENTS if may_search(name, d)} for name in PRINCIPALS}
    shared = {d["source_id"] for d in DOCUMENTS if d["collection"] == "handbook" and not d["labels"]}
    closed = {d["source_id"] for d in DOCUMENTS} - shared
    assert seen["general"] == shared
    assert seen["restricted"] == shared | closed
    assert seen["owner"] == shared | closed
    assert not any(seen[name] for name in ("auditor", "tester", "admin"))
    assert [d["source_id"] for d in DOCUMENTS if d["labels"] == ["confidential"]] == ["salary-bands"]


def test_questions_cover_every_outcome_and_role() -> None:
    assert len(QUESTIONS) >= 30
    assert {question.role for question in QUESTIONS} == set(PRINCIPALS)
    assert min(Counter(question.outcome for question in QUESTIONS).values()) >= 6
    answered = {wanted_document(q)["path"].rpartition(".")[2] for q in QUESTIONS if q.outcome == "ok"}
    assert answered == {"txt", "md", "html", "docx", "pdf"}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_the_expected_words_are_in_the_expected_document(question: Question) -> None:
    if question.outcome != "ok":
        reachable = question.collection in (None, *(c["slug"] for c in MANIFEST["collections"]))
        permitted = reachable and any(is_visible(question, document) for document in DOCUMENTS)
        assert permitted == (question.outcome == "empty")
        return
    document = wanted_document(question)
    assert is_visible(question, document)
    assert "\n" not in (question.contains or "")
    assert all((question.contains or "") in text for text in texts(document["path"]))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.id)
def test_forbidden_words_exist_and_only_where_the_role_may_not_look(question: Question) -> None:
    visible = [everything_said(d) for d in DOCUMENTS if is_visible(question, d)]
    hidden = [everything_said(d) for d in DOCUMENTS if not is_visible(question, d)]
    for forbidden in map(plain, question.never):
        assert not any(forbidden in text for text in visible), forbidden
        assert any(forbidden in text for text in hidden), forbidden


def test_closed_markers_stand_in_closed_documents_only() -> None:
    shared = [everything_said(d) for d in DOCUMENTS if may_search("general", d)]
    for marker in ("Quillmark", "Brindlefen", "Янтароплёс", "Кварцевый Лотос", "青鸢", "霁川", "Tessaline"):
        assert not any(plain(marker) in text for text in shared)
        assert any(q.role == "general" and marker in q.never for q in QUESTIONS)
