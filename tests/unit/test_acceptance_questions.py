"""The suite's own files are read strictly: what is not understood is refused, with its place."""

import hashlib
from pathlib import Path

import pytest

from acceptance.corpus import check_documents, load_originals
from acceptance.credentials import Credentials, Holder, load_credentials
from acceptance.questions import SuiteError, load_suite

OK = """
[[questions]]
id = "q1"
role = "general"
query = "Сколько дней отпуска?"
outcome = "ok"
document = "leave.md"
contains = "28 дней"
"""
DENIED = '[[questions]]\nid = "q2"\nrole = "general"\nquery = "x"\noutcome = "denied"\ncollection = "board"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "file.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_questions_are_read_with_the_digest_of_their_file(tmp_path: Path) -> None:
    path = written(tmp_path, OK + DENIED)
    suite = load_suite(path)
    assert [question.id for question in suite.questions] == ["q1", "q2"]
    assert suite.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert suite.questions[0].rank == 3
    assert suite.questions[0].arguments() == {"query": "Сколько дней отпуска?"}
    assert suite.questions[1].arguments() == {"query": "x", "collection": "board"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "questions"),
        ("questions = []", "length"),
        ("not toml", "file.toml"),
        (OK + 'nevr = ["secret"]', "nevr"),
        (OK + 'never = "secret"', "never"),
        (OK + 'never = [""]', "never"),
        (OK + "rank = 0", "rank"),
        (OK.replace('"ok"', '"fine"'), "outcome"),
        (OK.replace('query = "Сколько дней отпуска?"', ""), "query"),
        (OK.replace('document = "leave.md"', ""), "q1: outcome ok needs document and contains"),
        (OK.replace('contains = "28 дней"', ""), "q1: outcome ok needs document and contains"),
        (DENIED + 'document = "leave.md"', "q2: outcome denied can have no document"),
        (DENIED + 'contains = "28 дней"', "q2: outcome denied can have no document"),
        (OK + OK, "q1: this id is used twice"),
    ],
)
def test_a_faulty_file_is_refused_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SuiteError, match=problem):
        load_suite(written(tmp_path, text))


DOCUMENT = '[[documents]]\npath = "file.toml"\nsource_id = "leave.md"\nedition = 2\n'


def test_originals_are_known_by_source_and_edition(tmp_path: Path) -> None:
    path = written(tmp_path, DOCUMENT)
    assert load_originals(path) == {("leave.md", 2): hashlib.sha256(path.read_bytes()).hexdigest()}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (DOCUMENT + DOCUMENT, "leave.md, edition 2, is listed twice"),
        (DOCUMENT.replace("file.toml", "gone.md"), "gone.md"),
        (DOCUMENT.replace("source_id", "source"), "source_id"),
        ("documents = 1", "documents"),
    ],
)
def test_a_faulty_manifest_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SuiteError, match=problem):
        load_originals(written(tmp_path, text))


def test_questions_about_documents_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    questions = load_suite(written(tmp_path, OK + "edition = 2")).questions
    check_documents(questions, {("leave.md", 2): "sha"})
    with pytest.raises(SuiteError, match=r"q1: leave\.md has no edition 2"):
        check_documents(questions, {("leave.md", 1): "sha"})
    with pytest.raises(SuiteError, match=r"q1: leave\.md is not in the corpus"):
        check_documents(questions, {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for load in (load_suite, load_originals, load_credentials):
        with pytest.raises(SuiteError, match="absent"):
            load(tmp_path / "absent")


def test_credentials_are_never_shown() -> None:
    credentials = Credentials("http://h", "http://h/mcp", {"general": Holder("g", "stk_secret")})
    assert credentials.token("general") == "stk_secret"
    assert "stk_secret" not in repr(credentials)
    with pytest.raises(SuiteError, match="no principal named other in the credentials; known: general"):
        credentials.token("other")


def test_misshapen_credentials_are_refused_without_quoting_them(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="principals") as caught:
        load_credentials(written(tmp_path, '{"url": "u", "mcp_url": "m", "principals": "stk_secret"}'))
    assert "stk_secret" not in str(caught.value)
