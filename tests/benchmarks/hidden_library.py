"""A collection of which the attacker may search a small part, others it may not, and the index that must not exist."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from pgvector import SparseVector
from security.bulk import Filler, invented
from sqlalchemy import text
from support.postgres import RunDatabase
from support.world import World, local

from app.analysis.embedder import Embedder
from app.analysis.terms import query_terms
from app.db.session import Transaction
from app.search import lexical
from app.search.lexical import DIMENSIONS, Statistics

ATTACKER = "mallory"
WORDS = 20  # of either kind, so that no peculiarity of one word is what is learned
VISIBLE, HIDDEN = 2_000, 20_000  # chunks
OFTEN, SELDOM = 0.3, 0.001  # the shares of hidden chunks that hold a word

_NAIVE_INDEX = """
    CREATE TABLE naive_index AS SELECT chunk_id, class_id, terms, weights FROM chunk_index;
    CREATE INDEX ON naive_index USING gin (terms);
    ANALYZE naive_index;
    GRANT SELECT ON naive_index TO stacks_service;
"""
_NAIVE = text("""
    SELECT chunk_id FROM (
        SELECT chunk_id, class_id, weights <#> :question AS score FROM naive_index
        WHERE terms && CAST(:terms AS integer[])
    ) AS everybodys WHERE class_id = ANY(:classes) ORDER BY score, chunk_id LIMIT :limit
""")


@dataclass(frozen=True, slots=True)
class Library:
    """A filled instance, and what the attacker has found out beforehand: names and ids, not what is behind them."""

    world: World
    token: str
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
    often, seldom, absent = (marks[start : start + WORDS] for start in (0, WORDS, 2 * WORDS))
    forbidden = [f"vault-{place:03}" for place in range(WORDS)]
    await _rule(world, forbidden)
    with database.superuser() as connection:
        filler = Filler(connection, embedder, common)
        filler.fill(filler.shelf("library", "open", VISIBLE))
        strewn = {**dict.fromkeys(often, OFTEN), **dict.fromkeys(seldom, SELDOM)}
        hidden = filler.fill(filler.shelf("library", "closed", HIDDEN, strewn))
        connection.execute(_NAIVE_INDEX)
        filler.settle()
        jobs = connection.execute("SELECT id FROM jobs WHERE document_id = ANY(%s)", (hidden,)).fetchall()
    token = await world.token(ATTACKER)
    jobs_seen = [UUID(str(row[0])) for row in jobs]
    return Library(world, token, common[300:303], often, seldom, absent, forbidden, hidden, jobs_seen)


async def _rule(world: World, forbidden: list[str]) -> None:
    await world.members("collection-creator", principals={"owner", ATTACKER})
    for slug in ("library", *forbidden):
        await world.collection(slug)
    await world.collection("den", local(ATTACKER))
    for action in ("search", "open", "ingest"):
        await world.grant(action, "library", principal=ATTACKER, label="open")


def _alike(embedder: Embedder, words: list[str]) -> list[str]:
    """Words that are one term and equally many tokens, so that asking for one costs what asking for another does."""
    costs = {word: (len(embedder.token_spans(word)), len(query_terms(word))) for word in words}
    usual = max(set(costs.values()), key=list(costs.values()).count)
    return [word for word, cost in costs.items() if cost == usual]


@contextmanager
def naive_index() -> Iterator[None]:
    """Within the context every search goes to one index over everybody's chunks, and the class is asked afterwards."""
    honest = lexical.best
    lexical.best = _naive_best
    try:
        yield
    finally:
        lexical.best = honest


async def _naive_best(
    transaction: Transaction, classes: list[int], terms: list[int], known: Statistics, limit: int
) -> list[UUID]:
    question = SparseVector({term: known.idf(term) for term in terms}, DIMENSIONS)
    values = {"terms": terms, "question": question, "classes": classes, "limit": limit}
    return list((await transaction.connection.execute(_NAIVE, values)).scalars())
