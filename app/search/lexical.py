"""The lexical path: BM25 whose statistics are summed over the caller's classes, so no score knows of the others.

Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). The document side of the score
is stored with the chunk; the length it is measured against is a constant, not a corpus average, for the same reason.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from pgvector import SparseVector
from sqlalchemy import text

from app.db.session import Transaction

DIMENSIONS = 1_000_000_000  # of the stored sparse vectors; term ids are below it
_KEY_SHIFT = 32

_STATISTICS = text("""
    SELECT (SELECT coalesce(sum(chunks), 0) FROM class_sizes WHERE class_id = ANY(:classes)) AS chunks,
           (SELECT json_object_agg(term, frequency) FROM (
               SELECT term, sum(frequency) AS frequency FROM class_terms
               WHERE class_id = ANY(:classes) AND term = ANY(:terms) AND frequency > 0 GROUP BY term) t) AS terms
""")
_BEST = text("""
    SELECT chunk_id FROM chunk_index
    WHERE keys && CAST(:keys AS bigint[]) AND live_from IS NOT NULL AND live_until IS NULL
    ORDER BY weights <#> :question, chunk_id LIMIT :limit
""")


@dataclass(frozen=True, slots=True)
class Statistics:
    """How often the terms of a query occur in the caller's scope: `chunks` in all, and per term those holding it."""

    chunks: int
    frequency: Mapping[int, int]

    def idf(self, term: int) -> float:
        """Inverse document frequency over the scope; a term the scope does not hold has the greatest."""
        held = self.frequency.get(term, 0)
        return math.log(1 + (self.chunks - held + 0.5) / (held + 0.5))

    def coverage(self, terms: Iterable[int], covered: Iterable[int]) -> float:
        """The share (0..1) of the query's idf mass that `covered` makes up."""
        mass = {term: self.idf(term) for term in terms}
        whole = sum(mass.values())
        return sum(mass[term] for term in set(covered) if term in mass) / whole if whole else 0.0


async def statistics(transaction: Transaction, classes: list[int], terms: list[int]) -> Statistics:
    """The statistics of `terms`, summed over `classes`."""
    row = (await transaction.connection.execute(_STATISTICS, {"classes": classes, "terms": terms})).one()
    return Statistics(int(row.chunks), {int(term): held for term, held in (row.terms or {}).items()})


async def best(
    transaction: Transaction, classes: list[int], terms: list[int], known: Statistics, limit: int
) -> list[UUID]:
    """The `limit` chunks of `classes` with the highest BM25 for `terms`, best first."""
    weights = {term: known.idf(term) for term in terms if term in known.frequency}
    if not weights:
        return []
    keys = [class_id << _KEY_SHIFT | term for class_id in classes for term in weights]
    values = {"keys": keys, "question": SparseVector(weights, DIMENSIONS), "limit": limit}
    return list((await transaction.connection.execute(_BEST, values)).scalars())
