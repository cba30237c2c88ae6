"""Terms: what counts as the same word, what stays whole, and that no text breaks or slows the analysis."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.terms import LONGEST_TERM, TERM_LIMIT, analyse, document_terms, query_terms

ANY_TEXT = st.text(alphabet=st.characters(codec=None), max_size=300)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("хранения документов", "хранение документы"),
        ("Runners", "runner"),
        ("Ёлка", "елка"),
        ("за\u0301мок", "замок"),
        ("до\u00adго\u200bвор", "договор"),
        ("и\u0306од", "йод"),
        ("ＡＢＣ１２", "abc12"),
        ("ﬁne", "FINE"),
        ("café", "cafe\u0301"),
        ("№5", "5"),
        ("7\u20138", "7-8"),
    ],
)
def test_spellings_of_one_word_are_one_term(one: str, other: str) -> None:
    assert document_terms(one) == document_terms(other)


def test_short_i_is_not_i() -> None:
    assert query_terms("майка") != query_terms("маика")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("6.0.5(1)", {"6.0.5(1)", "6", "0", "5", "1"}),
        ("см. п.6.0.5(1)", {"6.0.5(1)", "п.6.0.5(1)", "п", "6"}),
        ("ГОСТ 12.1.004-91,", {"гост", "12.1.004-91", "12", "1", "004", "91"}),
        ("(AB-1234/5)", {"ab-1234/5", "1234/5", "ab", "1234", "5"}),
        ("3,14; 12мм", {"3,14", "3", "14", "12мм", "12", "мм"}),
        ("max_tokens", {"max", "token"}),
    ],
)
def test_codes_count_whole_and_in_parts(text: str, terms: set[str]) -> None:
    assert terms <= set(analyse(text))


def test_chinese_gives_words_and_pairs_without_doubling() -> None:
    terms = list(analyse("档案馆保存文件"))
    assert {"档案馆", "档案", "保存", "文件"} <= set(terms)
    assert terms.count("保存") == 1


def test_digits_inside_chinese_stand_alone() -> None:
    assert "2016" in set(analyse("他在2016年赢得了冠军"))


def test_marks_of_other_scripts_stay_in_their_word() -> None:
    assert list(analyse("हिन्दी भाषा")) == ["हिन्दी", "भाषा"]


def test_ids_are_fixed_for_ever() -> None:
    # Stored indexes depend on these numbers: a change here needs a reindex.
    assert document_terms("archive архив 档案") == [826697741, 92469197, 221930254]


@given(ANY_TEXT)
def test_any_text_gives_bounded_repeatable_terms(text: str) -> None:
    terms = document_terms(text)
    assert terms == document_terms(text)
    assert all(0 <= term < TERM_LIMIT for term in terms)
    assert all(0 < len(term) <= LONGEST_TERM for term in analyse(text))


@given(ANY_TEXT)
def test_query_terms_are_the_documents_own_terms_once(text: str) -> None:
    terms = query_terms(text)
    assert len(terms) == len(set(terms))
    assert set(terms) <= set(document_terms(text))


def test_queries_leave_out_single_ideographs_of_longer_runs() -> None:
    single = set(document_terms("皮"))
    assert single <= set(document_terms("皮栯")) - set(query_terms("皮栯"))
    assert single == set(query_terms("皮"))


@pytest.mark.parametrize(
    "unit",
    ["a", "я", "中", "1.", "1(", "a1", "ab-", "\u0301\u0316", "\u0f73", "x\u0316\u0301", "क\u094d", ")-", "\u200b"],
)
def test_hostile_repetition_stays_linear(unit: str) -> None:
    # With a quadratic step anywhere this would not end within the patience of any test run.
    text = unit * (1_000_000 // len(unit))
    assert len(document_terms(text)) <= 3 * len(text)


def test_threads_do_not_disturb_one_another() -> None:
    text = "running libraries хранящихся документах " * 50
    expected = document_terms(text)
    with ThreadPoolExecutor(4) as pool:
        assert all(terms == expected for terms in pool.map(document_terms, [text] * 16))
