"""The relevance floor: monotone, fixed by the model alone, and right on a small corpus with the real embedder."""

import math
from collections import Counter
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.embedder import Embedder
from app.analysis.floor import Floor
from app.analysis.terms import document_terms, query_terms
from app.errors import ConfigurationError, NotConfigured

MODEL = Embedder.name
FLOOR = Floor.load(MODEL)
SHARES = st.floats(0, 1)
CHUNKS = st.integers(0, 10_000_000)
TERMS = st.integers(0, 50)

PASSAGES = [
    "Employees receive twenty-eight days of paid leave a year; up to five unused days may be carried over.",
    "Visitors sign in at reception and wear a badge; they are accompanied at all times.",
    "Invoices above ten thousand euros need two signatures and three quotations.",
    "The server room is kept between 18 and 22 degrees; alarms go to the duty engineer.",
    "Командировочные выплачиваются не позднее чем за три дня до отъезда; отчёт сдаётся в течение недели.",
    "Работа с ртутью разрешена только в вытяжном шкафу; пролитую ртуть собирают набором для демеркуризации.",
    "Испытательный срок составляет три месяца, для руководителей шесть месяцев.",
    "Пункт 6.0.5(1): договоры хранятся пять лет после окончания срока действия.",
    "借用设备须填写申请表，借期最长三十天，逾期需说明原因。",
    "食堂早餐时间为七点至九点，午餐时间为十一点半至十三点。",
    "加班须经部门主管批准，加班时间可以在三个月内调休。",
    "宿舍租金每月从工资中扣除，退房须提前两周通知。",
]
ANSWERED = [
    "How many days of vacation can I carry over?",
    "who has to sign large invoices",
    "badge",
    "Сколько длится испытательный срок?",
    "пролили ртуть, что делать",
    "6.0.5(1)",
    "设备可以借多久？",
    "加班调休",
]
UNANSWERED = [
    "blorptang fluviskor",
    "qwzxk",
    "шмурдяк бренофлюк",
    "йцукз фывап",
    "鏈蒻瘵覘飳蠁",
    "How do volcanoes form under the sea?",
    "Кто написал музыку к этому фильму?",
    "哪位画家画了这幅向日葵？",
]


@given(
    cosine=SHARES, coverage=SHARES, neutral=SHARES, more=st.tuples(SHARES, SHARES, SHARES), terms=TERMS, chunks=CHUNKS
)
def test_more_of_any_signal_never_closes_the_door(
    cosine: float, coverage: float, neutral: float, more: tuple[float, float, float], terms: int, chunks: int
) -> None:
    bar = FLOOR.bar(terms, chunks)
    if bar.admits(cosine, coverage, neutral):
        assert bar.admits(max(cosine, more[0]), max(coverage, more[1]), max(neutral, more[2]))


@given(terms=TERMS, chunks=CHUNKS, more=CHUNKS)
def test_the_bar_rises_with_the_scope_and_stays_within_what_was_calibrated(terms: int, chunks: int, more: int) -> None:
    low, high = FLOOR.bar(terms, min(chunks, more)), FLOOR.bar(terms, max(chunks, more))
    assert low.near <= high.near
    assert low.neutral_near <= high.neutral_near
    assert FLOOR.thresholds.small.near <= low.near <= high.near <= FLOOR.thresholds.large.near


def test_words_alone_are_not_enough_and_neither_is_a_high_cosine() -> None:
    bar = FLOOR.bar(1, 100)
    assert not bar.admits(0.6, 1.0, 0.0)
    assert not bar.admits(0.95, 0.0, 1.0)


def test_neutral_query_is_unit_length_and_has_nothing_of_the_languages() -> None:
    vector = np.random.default_rng(0).normal(size=Embedder.dimension).astype(np.float32)
    neutral = FLOOR.neutral(vector / np.linalg.norm(vector))
    assert np.linalg.norm(neutral) == pytest.approx(1, abs=1e-5)
    assert np.abs(FLOOR.languages @ neutral).max() < 1e-3
    assert not FLOOR.neutral(np.zeros(Embedder.dimension, np.float32)).any()


def test_an_uncalibrated_model_is_not_configured() -> None:
    with pytest.raises(NotConfigured):
        Floor.load("some-other-model")


@pytest.mark.parametrize("content", ["", "[]", "{", f'{{"{MODEL}": {{}}}}', f'{{"{MODEL}": {{"languages": "x"}}}}'])
def test_a_damaged_calibration_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    (tmp_path / "calibration.json").write_text(content)
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(ConfigurationError):
        Floor.load(MODEL)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return Embedder.load(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def vectors(embedder: Embedder) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.array([embedder.passage(text) for text in PASSAGES])


def test_calibration_was_made_with_this_model(embedder: Embedder) -> None:
    assert FLOOR.revision == embedder.revision


@pytest.mark.parametrize(("question", "expected"), [(q, True) for q in ANSWERED] + [(q, False) for q in UNANSWERED])
def test_twelve_passages_in_three_languages(
    embedder: Embedder,
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    question: str,
    expected: bool,
) -> None:
    vector, terms = embedder.query(question), query_terms(question)
    bar = FLOOR.bar(len(terms), len(PASSAGES))
    signals = zip(vectors @ vector, _coverage(terms), vectors @ FLOOR.neutral(vector), strict=True)
    assert any(bar.admits(float(c), share, float(n)) for c, share, n in signals) is expected


def _coverage(terms: list[int]) -> list[float]:
    held = [set(document_terms(text)) for text in PASSAGES]
    frequency = Counter(term for passage in held for term in passage)
    idf = {t: math.log(1 + (len(held) - frequency[t] + 0.5) / (frequency[t] + 0.5)) for t in terms}
    return [sum(idf[t] for t in terms if t in passage) / sum(idf.values()) for passage in held]
