"""What a caller could learn from the latencies of its own calls; a few minutes on one core.

    python tests/benchmarks/timing_attack.py [--samples N] [--json FILE]

A scripted attacker calls two kinds of things in random order (a word that hidden documents hold against one that
nothing holds; a forbidden name or id against an unknown one), learns on half of the latencies which side of which
threshold tells the kinds apart, and guesses the other half; then the other way round. 50 % is guessing blind. The same
attacker is set upon a naive index, ranked over everybody's chunks and filtered afterwards: it must win there, or it
could not lose here. Exits 1 when either fails. The figures of the last run are in docs/benchmarks.md.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID, uuid4

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from pgvector import SparseVector  # noqa: E402 (the repository is on the path only now)
from security.bulk import Filler, invented  # noqa: E402
from security.desk import Desk, opened  # noqa: E402
from sqlalchemy import text  # noqa: E402
from support.postgres import TICKET_KEY, RunCluster, RunDatabase  # noqa: E402
from support.world import World, local  # noqa: E402

from app import bootstrap  # noqa: E402
from app.analysis.embedder import Embedder  # noqa: E402
from app.analysis.terms import query_terms  # noqa: E402
from app.config import Settings  # noqa: E402
from app.search.lexical import DIMENSIONS  # noqa: E402

SAMPLES, LEAST_SAMPLES = 1000, 400  # a side; with 1,000 a blind guesser is within 48..52 % nineteen times of twenty
BLIND, MARGIN, DETECTED = 0.5, 0.05, 0.65
WORDS = 20  # of either kind, so that no peculiarity of one word is what is learned
VISIBLE, HIDDEN = 2_000, 20_000
OFTEN, SELDOM = 0.3, 0.001  # the shares of hidden chunks that hold a word

NAIVE_INDEX = """
    CREATE TABLE naive_index AS SELECT chunk_id, class_id, terms, weights FROM chunk_index;
    CREATE INDEX ON naive_index USING gin (terms);
    ANALYZE naive_index;
    GRANT SELECT ON naive_index TO stacks_service;
"""
_NAIVE = text("""
    SELECT chunk_id FROM (
        SELECT chunk_id, class_id FROM naive_index WHERE terms && CAST(:terms AS integer[])
        ORDER BY weights <#> :question, chunk_id LIMIT 1000
    ) AS everybodys WHERE class_id = ANY(:classes) LIMIT 100
""")
RULE: dict[str, Any] = {"action": "search", "collection": "{}", "principal": "eve"}
NAMES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("search in a collection", "POST", "/api/v1/search", {"query": "a word", "collection": "{}"}),
    ("a collection", "GET", "/api/v1/collections/{}", {}),
    ("a collection's documents", "GET", "/api/v1/collections/{}/documents", {}),
    ("upload", "POST", "/api/v1/collections/{}/documents", {"files": ""}),
    ("publish", "POST", "/api/v1/collections/{}/publish", {"wait": False}),
    ("grant", "POST", "/api/v1/grants", RULE),
    ("explain", "GET", "/api/v1/access/explain?principal=eve&action=search&collection={}", {}),
)
IDS = (
    ("a document", "GET", "/api/v1/documents/{}"),
    ("a version", "GET", "/api/v1/documents/{}/versions/1"),
    ("a text", "GET", "/api/v1/documents/{}/versions/1/text"),
    ("an original", "GET", "/api/v1/documents/{}/versions/1/original"),
    ("removal", "DELETE", "/api/v1/documents/{}"),
    ("a job", "GET", "/api/v1/jobs/{}"),
    ("explain a document", "GET", "/api/v1/access/explain?principal=eve&action=search&document={}"),
    ("who, of a document", "GET", "/api/v1/access/who?document={}"),
)

Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Attack:
    """How often the attacker was right (0..1), and the medians in milliseconds that it had to go by."""

    name: str
    right: float
    first_ms: float
    second_ms: float
    samples: int


def guess(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of latencies that the attacker puts on the right side, each half judged by what the other taught."""
    halves = [(first[start::2], second[start::2]) for start in (0, 1)]
    right = sum(_judged(learn(*halves[one]), *halves[1 - one]) for one in (0, 1))
    return right / (len(first) + len(second))


def learn(first: Sequence[float], second: Sequence[float]) -> tuple[float, bool]:
    """The threshold that divides best, and whether `first` is the slower side of it."""
    marked = sorted([(value, 1) for value in first] + [(value, -1) for value in second])
    best, lead, threshold, slower = 0, 0, marked[0][0], False
    for place, (value, side) in enumerate(marked[:-1]):
        lead += side  # how far `first` is ahead among those up to here
        if abs(lead) > best:
            best, threshold, slower = abs(lead), (value + marked[place + 1][0]) / 2, lead < 0
    return threshold, slower


def _judged(taught: tuple[float, bool], first: Sequence[float], second: Sequence[float]) -> int:
    threshold, slower = taught
    return sum((value > threshold) is slower for value in first) + sum(
        (value > threshold) is not slower for value in second
    )


async def attack(name: str, first: Sequence[Call], second: Sequence[Call], samples: int) -> Attack:
    """Make `samples` calls of either kind in random order, each kind's in turn, and guess."""
    order = [0] * samples + [1] * samples
    random.Random(name).shuffle(order)
    taken: tuple[list[float], list[float]] = ([], [])
    for call in (*first[:10], *second[:10]):
        await call()
    gc.collect()
    gc.disable()
    for kind in order:
        calls = (first, second)[kind]
        call = calls[len(taken[kind]) % len(calls)]
        began = time.perf_counter_ns()
        await call()
        taken[kind].append((time.perf_counter_ns() - began) / 1e6)
    gc.enable()
    return Attack(name, guess(*taken), median(taken[0]), median(taken[1]), samples)


@dataclass(frozen=True, slots=True)
class Library:
    """A filled instance, and what the attacker has found out beforehand: names and ids, not what is behind them."""

    world: World
    token: str
    open_class: int
    common: list[str]
    often: list[str]
    seldom: list[str]
    absent: list[str]
    forbidden: list[str]
    hidden: list[UUID]
    hidden_jobs: list[UUID]


async def furnish(world: World, database: RunDatabase, embedder: Embedder) -> Library:
    """A collection with an open and a closed part, others that are closed as a whole, and one of the attacker's own."""
    rng = random.Random(7)
    common = invented(rng, 3000, 3)
    marks = _alike(embedder, invented(rng, 3000, 4))
    often, seldom, absent = marks[:WORDS], marks[WORDS : 2 * WORDS], marks[2 * WORDS : 3 * WORDS]
    forbidden = [f"vault-{place:03}" for place in range(WORDS)]
    await world.members("collection-creator", principals={"owner", "mallory"})
    for slug in ("library", *forbidden):
        await world.collection(slug)
    await world.collection("den", local("mallory"))
    for action in ("search", "open", "ingest"):
        await world.grant(action, "library", principal="mallory", label="open")
    strewn = {**dict.fromkeys(often, OFTEN), **dict.fromkeys(seldom, SELDOM)}
    with database.superuser() as connection:
        filler = Filler(connection, embedder, common)
        filler.fill(filler.shelf("library", "open", VISIBLE))
        hidden = filler.fill(filler.shelf("library", "closed", HIDDEN, strewn))
        filler.settle()
        jobs = connection.execute("SELECT id FROM jobs WHERE document_id = ANY(%s)", (hidden,)).fetchall()
        connection.execute(NAIVE_INDEX)
    token = await world.token("mallory")
    open_class = filler.shelf("library", "open", 0).class_id
    jobs_seen = [UUID(str(row[0])) for row in jobs]
    return Library(world, token, open_class, common[:40], often, seldom, absent, forbidden, hidden, jobs_seen)


def _alike(embedder: Embedder, words: list[str]) -> list[str]:
    """Words that are one term and equally many tokens, so that asking for one costs what asking for another does."""
    costs = {word: (len(embedder.token_spans(word)), len(query_terms(word))) for word in words}
    usual = max(set(costs.values()), key=list(costs.values()).count)
    return [word for word, cost in costs.items() if cost == usual]


class Attacker:
    """Everything that is tried on a library."""

    def __init__(self, library: Library, desk: Desk, samples: int) -> None:
        self._library = library
        self._desk = desk
        self._samples = samples

    async def naive(self) -> list[Attack]:
        """Words, on the index that must not exist."""
        return [await self._words("naive shared index, word often", self._naive, self._library.often)]

    async def every(self) -> list[Attack]:
        """Words, names and ids, on the instance."""
        library = self._library
        found = [
            await self._words("search, word in 30 % of hidden chunks", self._search, library.often),
            await self._words("search, word in 0.1 % of hidden chunks", self._search, library.seldom),
        ]
        unknown = [f"vault-{place:03}" for place in range(500, 500 + WORDS)]
        for name, method, path, body in NAMES:
            first, second = (
                [self._rest(method, path.format(slug), body, slug) for slug in slugs]
                for slugs in (library.forbidden, unknown)
            )
            found.append(await attack(f"{name}: forbidden or unknown", first, second, self._samples))
        for name, method, path in IDS:
            ids = library.hidden_jobs if "/jobs/" in path else library.hidden
            first, second = (
                [self._rest(method, path.format(one), {}, "") for one in some]
                for some in (ids[: self._samples], [uuid4() for _ in range(self._samples)])
            )
            found.append(await attack(f"{name}: hidden or unknown", first, second, self._samples))
        return found

    async def _words(self, name: str, ask: Callable[[str], Call], words: list[str]) -> Attack:
        return await attack(
            name, [ask(word) for word in words], [ask(one) for one in self._library.absent], self._samples
        )

    def _search(self, word: str) -> Call:
        query = f"{word} {' '.join(self._library.common[5:8])}"
        return lambda: self._desk.search(self._library.token, query=query)

    def _naive(self, word: str) -> Call:
        terms = query_terms(f"{word} {' '.join(self._library.common[5:8])}")
        values = {
            "terms": terms,
            "question": SparseVector(dict.fromkeys(terms, 1.0), DIMENSIONS),
            "classes": [self._library.open_class],
        }

        async def ask() -> object:
            database = self._library.world.services.database
            return await database.read(lambda snapshot: snapshot.connection.execute(_NAIVE, values))

        return ask

    def _rest(self, method: str, path: str, body: dict[str, object], slug: str) -> Call:
        filled = {key: value.format(slug) if isinstance(value, str) else value for key, value in body.items()}
        rest: dict[str, object] = {"json": filled} if filled else {}
        if "files" in filled:
            rest = {"files": {"file": ("note.txt", b"a note", "text/plain")}}
        return lambda: self._desk.ask(self._library.token, method, path, **rest)


async def run(samples: int, run_dir: Path, model_dir: Path) -> tuple[list[Attack], list[Attack]]:
    """The attacks on the naive index and on the instance, each with `samples` calls a side."""
    embedder = Embedder.load(model_dir)
    with (
        RunCluster(run_dir / "data").running() as cluster,
        cluster.template() as template,
        cluster.empty(template=template) as database,
    ):
        settings = Settings(data_dir=run_dir / "instance", ticket_key=TICKET_KEY)
        services = bootstrap.build(settings, database.service_url, embedder)
        library = await furnish(await World(services).begin(), database, embedder)
        async with opened(services) as desk:
            attacker = Attacker(library, desk, samples)
            found = await attacker.naive(), await attacker.every()
        await services.database.close()
        return found


def report(naive: list[Attack], ours: list[Attack]) -> bool:
    """Print every attack; whether the naive index was seen through and the instance was not."""
    print(f"{'attack':58} {'right':>6} {'median ms':>16} {'calls':>6}")
    for one in (*naive, *ours):
        print(f"{one.name:58} {one.right:6.1%} {one.first_ms:7.3f} {one.second_ms:8.3f} {2 * one.samples:6}")
    return all(one.right > DETECTED for one in naive) and all(abs(one.right - BLIND) <= MARGIN for one in ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"calls a side, at least {LEAST_SAMPLES}")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    model_dir = Path(os.environ.get("STACKS_MODEL_DIR") or ROOT / ".cache" / "models")
    with tempfile.TemporaryDirectory(prefix="stacks-timing-") as folder:
        run_dir = Path(folder).resolve()
        run_dir.chmod(0o711)  # the embedded Postgres runs as an account of its own
        naive, ours = asyncio.run(run(max(options.samples, LEAST_SAMPLES), run_dir, model_dir))
    kept = report(naive, ours)
    figures = json.dumps({"naive": [asdict(one) for one in naive], "ours": [asdict(one) for one in ours]}, indent=1)
    print(figures)
    if options.json:
        options.json.write_text(figures + "\n", encoding="utf-8")
    sys.exit(0 if kept else "the attacker knows more than it should, or was not fit to judge")


if __name__ == "__main__":
    main()
