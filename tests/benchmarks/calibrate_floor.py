"""Calibrate the relevance floor on relevance sets and write app/analysis/calibration.json; a few minutes on one core.

    python tests/benchmarks/calibrate_floor.py [--cache FOLDER] [--write]

Answerable: each set's own questions, over its corpus and over scopes of 5 to 50 passages with one right one among them.
Unanswerable: the other sets' questions, the same small scopes without the right passage (nor, where known, its
article), everyday errands, made-up words. The sets are looked for in ../shared/data beside the repository, or where
STACKS_SHARED_DATA says.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from floor_questions import everyday, made_up, made_up_asked
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from app.analysis.embedder import Embedder  # noqa: E402 (the repository is on the path only now)
from app.analysis.floor import FILE, Floor, Level, Thresholds  # noqa: E402
from app.analysis.terms import document_terms, query_terms  # noqa: E402

SETS = ("xquad_mixed", "danetqa", "cmrc2018_dev", "scifact_dev")
PASSAGES, QUESTIONS, FOREIGN = 1500, 400, 300
PATH_DEPTH, JUDGED, RANK_CONSTANT = 100, 50, 60
K1, B, LENGTH = 1.2, 0.75, 120
WEIGHT, LEAST_COVERAGE, LEAST_TERMS = 0.2, 0.05, 2
LOST, FOREIGN_BY_MEANING = 0.015, 0.05
SMALL, LARGE = 25, 1000
Vectors = NDArray[np.float32]


@dataclass
class Corpus:
    """One relevance set, sampled: `passages` and `questions` with their vectors row by row."""

    name: str
    passages: list[dict[str, str]]
    questions: list[dict[str, str]]
    right: dict[str, set[str]]
    passage_vectors: Vectors
    question_vectors: Vectors
    postings: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = field(default_factory=dict)
    lengths: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def index(self) -> None:
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.lengths = np.zeros(len(self.passages))
        for place, passage in enumerate(self.passages):
            terms = document_terms(passage["text"])
            self.lengths[place] = len(terms)
            for term, count in Counter(terms).items():
                found[term].append((place, count))
        self.postings = {t: (np.array([p for p, _ in x]), np.array([float(c) for _, c in x])) for t, x in found.items()}


@dataclass
class Case:
    """A question asked of a scope: what the floor would see of the judged candidates."""

    corpus: str
    kind: str
    scope: str
    cosine: NDArray[np.float64]
    coverage: NDArray[np.float64]
    neutral: NDArray[np.float64]
    terms: int
    chunks: int

    def words(self, weight: float = WEIGHT, least: float = LEAST_COVERAGE) -> float:
        return float(np.where(self.coverage >= least, self.cosine + weight * self.coverage, -1).max())

    def meaning(self) -> float:
        return float(self.neutral.max()) if self.terms >= LEAST_TERMS else -1.0


class Vectoriser:
    """Embeds lists of texts, and keeps the vectors in a folder for the next run."""

    def __init__(self, cache: Path) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        self.cache = cache
        self.embedder = Embedder.load(cache / "models")

    def __call__(self, texts: list[str], embed: Callable[[str], Vectors]) -> Vectors:
        key = "\0".join([self.embedder.revision, embed.__name__, *texts])
        path = self.cache / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
        if not path.exists():
            np.save(path, np.array([embed(text) for text in texts]))
        vectors: Vectors = np.load(path)
        return vectors


def read_lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def load(folder: Path, name: str, vectorise: Vectoriser) -> Corpus:
    chance = random.Random(1)
    right: dict[str, set[str]] = defaultdict(set)
    for line in (folder / name / "qrels.tsv").read_text().splitlines()[1:]:
        question, passage, grade = line.split("\t")
        if int(grade) > 0:
            right[question].add(passage)
    questions = [q for q in read_lines(folder / name / "queries.jsonl") if q["id"] in right]
    chance.shuffle(questions)
    questions = questions[:QUESTIONS]
    needed = set().union(*(right[q["id"]] for q in questions))
    every = read_lines(folder / name / "corpus.jsonl")
    rest = [p for p in every if p["id"] not in needed]
    chance.shuffle(rest)
    passages = [p for p in every if p["id"] in needed] + rest[: max(0, PASSAGES - len(needed))]
    embedder = vectorise.embedder
    corpus = Corpus(
        name, passages, questions, right,
        vectorise([p["text"] for p in passages], embedder.passage),
        vectorise([q["text"] for q in questions], embedder.query),
    )  # fmt: skip
    corpus.index()
    return corpus


def language_directions(corpora: list[Corpus]) -> Vectors:
    """Orthonormal (3, dimension): the span of the mean passages of each language, sets alike in weight."""
    means: dict[str, list[Vectors]] = defaultdict(list)
    for corpus in corpora:
        languages = np.array([p["lang"] for p in corpus.passages])
        for language in sorted(set(languages)):
            means[language].append(corpus.passage_vectors[languages == language].mean(axis=0))
    directions, _ = np.linalg.qr(np.array([np.mean(means[language], axis=0) for language in sorted(means)]).T)
    return directions.T.round(5).astype(np.float32)


class Asker:
    """Asks questions of scopes of one corpus, by the same two paths and fusion as the search."""

    def __init__(self, corpus: Corpus, floor: Floor) -> None:
        self.corpus, self.floor = corpus, floor
        self.everything = np.arange(len(corpus.passages))

    def ask(self, kind: str, scope: str, text: str, vector: Vectors, places: NDArray[np.int64]) -> Case:
        vectors = self.corpus.passage_vectors[places]
        terms = query_terms(text)
        coverage, score = self.lexical(terms, places)
        cosine = (vectors @ vector).astype(float)
        best = fuse(cosine, score)
        neutral = (vectors[best] @ self.floor.neutral(vector)).astype(float)
        return Case(self.corpus.name, kind, scope, cosine[best], coverage[best], neutral, len(terms), len(places))

    def lexical(self, terms: list[int], places: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coverage and BM25 of every passage of the scope, with the scope's own statistics."""
        counts = np.zeros((len(terms), len(self.corpus.passages)))
        for row, term in enumerate(terms):
            if term in self.corpus.postings:
                where, count = self.corpus.postings[term]
                counts[row, where] = count
        counts = counts[:, places]
        held = (counts > 0).sum(axis=1)
        idf = np.log(1 + (len(places) - held + 0.5) / (held + 0.5))
        norm = K1 * (1 - B + B * self.corpus.lengths[places] / LENGTH)
        mass = idf.sum() or 1.0
        return idf @ (counts > 0) / mass, idf @ (counts * (K1 + 1) / (counts + norm))


def fuse(cosine: NDArray[np.float64], score: NDArray[np.float64]) -> NDArray[np.int64]:
    fused = np.zeros(len(cosine))
    dense = np.argsort(-cosine)[:PATH_DEPTH]
    lexical = np.argsort(-score)[:PATH_DEPTH]
    for ranking in (dense, lexical[score[lexical] > 0]):
        fused[ranking] += 1 / (RANK_CONSTANT + 1 + np.arange(len(ranking)))
    return np.argsort(-fused)[:JUDGED]


def cases(
    corpus: Corpus, others: list[Corpus], invented: dict[str, tuple[list[str], Vectors]], floor: Floor
) -> Iterator[Case]:
    """Every question of the calibration that is asked of `corpus`."""
    asker, chance = Asker(corpus, floor), random.Random(3)
    count = len(corpus.passages)

    def some() -> NDArray[np.int64]:
        return np.array(chance.sample(range(count), chance.randint(5, 50)))

    yield from own_cases(asker, chance)
    for other in others:
        for question, vector in list(zip(other.questions, other.question_vectors, strict=True))[:FOREIGN]:
            yield asker.ask(f"from {other.name}", "whole", question["text"], vector, asker.everything)
            yield asker.ask(f"from {other.name}", "small", question["text"], vector, some())
    for kind, (texts, vectors) in invented.items():
        for text, vector in zip(texts, vectors, strict=True):
            yield asker.ask(kind, "whole", text, vector, asker.everything)
            yield asker.ask(kind, "small", text, vector, some())


def own_cases(asker: Asker, chance: random.Random) -> Iterator[Case]:
    corpus = asker.corpus
    ids = [p["id"] for p in corpus.passages]
    languages = np.array([p["lang"] for p in corpus.passages])
    parallel = len(set(languages)) > 1
    for question, vector in zip(corpus.questions, corpus.question_vectors, strict=True):
        text, right = question["text"], corpus.right[question["id"]]
        # Parallel passages are named set-language-article-paragraph: none of the same article may pass for foreign.
        articles = {name.split("-")[2] for name in right} if parallel else set()
        near = {i for i, name in enumerate(ids) if name in right or (parallel and name.split("-")[2] in articles)}
        answers = [
            i for i, name in enumerate(ids) if name in right and (not parallel or languages[i] == question["lang"])
        ]
        scope = chance.sample([i for i in range(len(ids)) if i not in near], chance.randint(5, 50))
        yield asker.ask("own", "whole", text, vector, asker.everything)
        yield asker.ask("own", "small", text, vector, np.array([*scope[1:], chance.choice(answers)]))
        yield asker.ask("own, right passage absent", "small", text, vector, np.array(scope))
        for language in set(languages) - {question["lang"]}:
            yield asker.ask("own, other language", "whole", text, vector, np.flatnonzero(languages == language))


def choose(every: list[Case]) -> Thresholds:
    """The operating point, for small scopes and for whole corpora."""
    small = level([case for case in every if case.scope == "small"], SMALL)
    return Thresholds(
        WEIGHT, LEAST_COVERAGE, LEAST_TERMS, small, level([c for c in every if c.scope == "whole"], LARGE)
    )


def level(every: list[Case], chunks: int) -> Level:
    """No made-up word by meaning and few foreign questions; then as high as the losses of real questions allow."""
    made = max(case.meaning() for case in every if case.kind == "made up")
    foreign = np.quantile([case.meaning() for case in every if case.kind.startswith("from")], 1 - FOREIGN_BY_MEANING)
    by_meaning = float(np.ceil(max(made, foreign) * 200 + 0.01) / 200)
    own = [case for case in every if case.kind == "own"]
    levels = np.array([9.0 if case.meaning() >= by_meaning else case.words() for case in own])
    return Level(chunks, float(np.floor(np.quantile(levels, LOST) * 1000) / 1000), by_meaning)


def admitted(case: Case, floor: Floor) -> bool:
    bar = floor.bar(case.terms, case.chunks)
    return any(bar.admits(c, v, n) for c, v, n in zip(case.cosine, case.coverage, case.neutral, strict=True))


def auc(good: list[float], bad: list[float]) -> float:
    ranks = np.concatenate([good, bad]).argsort().argsort()
    return float((ranks[: len(good)].sum() - len(good) * (len(good) - 1) / 2) / (len(good) * len(bad)))


def report(every: list[Case], floor: Floor) -> dict[str, float]:
    """Print the table; return what is worth keeping beside the thresholds."""
    rows: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for case in every:
        rows[case.corpus, case.kind, case.scope].append(admitted(case, floor))
    print(f"{'corpus':14}{'questions':28}{'scope':7}{'number':>7}{'answered':>10}{'empty':>8}")
    for (corpus, kind, scope), passed in sorted(rows.items()):
        share = np.mean(passed)
        print(f"{corpus:14}{kind:28}{scope:7}{len(passed):7}{share:10.3f}{1 - share:8.3f}")

    def empty(kind: str, scope: str = "") -> float:
        shares = [
            1 - np.mean(passed) for (_, k, s), passed in rows.items() if k.startswith(kind) and s.startswith(scope)
        ]
        return round(float(np.mean(shares)), 4)

    own = [case for case in every if case.kind == "own"]
    foreign = [case for case in every if case.kind.startswith("from")]
    signals: dict[str, Callable[[Case], float]] = {
        "cosine": lambda case: float(case.cosine.max()),
        "coverage": lambda case: float(case.coverage.max()),
        "neutral": lambda case: float(case.neutral.max()),
        "words": Case.words,
    }
    result = {f"auc_{name}": round(auc([*map(f, own)], [*map(f, foreign)]), 4) for name, f in signals.items()}
    answerable = [np.mean(p) for (_, k, _), p in rows.items() if k == "own"]
    return result | {
        "own_lost": round(float(1 - np.mean(answerable)), 4),
        "own_lost_whole": round(
            float(1 - np.mean([np.mean(p) for (_, k, s), p in rows.items() if (k, s) == ("own", "whole")])), 4
        ),
        "foreign_empty_whole": empty("from", "whole"),
        "foreign_empty_small": empty("from", "small"),
        "absent_empty_small": empty("own, right passage absent"),
        "other_language_lost": empty("own, other language"),
        "made_up_empty": empty("made up"),
        "asked_made_up_empty": empty("asked made up"),
        "everyday_empty": empty("everyday"),
    }


def leave_one_out(every: list[Case], floor: Floor) -> None:
    """How the operating point fares on a corpus that had no part in choosing it."""
    for name in SETS:
        chosen = Floor(floor.revision, choose([case for case in every if case.corpus != name]), floor.languages)
        held = [case for case in every if case.corpus == name]
        lost = 1 - np.mean([admitted(case, chosen) for case in held if case.kind == "own"])
        caught = 1 - np.mean([admitted(case, chosen) for case in held if case.kind.startswith("from")])
        print(f"chosen without {name:14} own lost {lost:.3f}, foreign empty {caught:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "closed-stacks-calibration")
    parser.add_argument("--write", action="store_true", help="replace the shipped calibration")
    options = parser.parse_args()
    folder = Path(os.environ.get("STACKS_SHARED_DATA", ROOT.parent / "shared" / "data")) / "sets"
    if not folder.is_dir():
        sys.exit(f"skipped: no relevance sets in {folder}; set STACKS_SHARED_DATA")
    vectorise = Vectoriser(options.cache)
    corpora = [load(folder, name, vectorise) for name in SETS]
    texts = {"made up": made_up(360), "asked made up": made_up_asked(160), "everyday": everyday()}
    invented = {kind: (t, vectorise(t, vectorise.embedder.query)) for kind, t in texts.items()}
    unset = Floor(
        vectorise.embedder.revision, Thresholds(0, 1, 1, Level(1, 1, 1), Level(2, 1, 1)), language_directions(corpora)
    )
    every = [case for c in corpora for case in cases(c, [o for o in corpora if o is not c], invented, unset)]
    floor = Floor(unset.revision, choose(every), unset.languages)
    summary = report(every, floor)
    leave_one_out(every, floor)
    print(json.dumps({"thresholds": asdict(floor.thresholds), **summary}, indent=2))
    if options.write:
        write(floor, vectorise.embedder.name, summary)


def write(floor: Floor, model: str, summary: dict[str, float]) -> None:
    entry = {
        "revision": floor.revision,
        "thresholds": asdict(floor.thresholds),
        "provenance": {"date": f"{datetime.now(UTC):%Y-%m-%d}", "sets": list(SETS), **summary},
        "languages": [[round(float(x), 5) for x in row] for row in floor.languages],
    }
    (ROOT / "app" / "analysis" / FILE).write_text(json.dumps({model: entry}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
