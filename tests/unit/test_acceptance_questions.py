"""The suite's own files are read strictly: what is not understood is refused, with its place."""

import hashlib
from pathlib import Path

import pytest

from acceptance.corpus import load_originals
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
