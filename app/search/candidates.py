"""Candidates: what the two paths find in the caller's classes, fused, and whether it is about the query at all."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from sqlalchemy import text

from app.analysis.floor import Floor
from app.db.session import Transaction
from app.domain.access import AccessScope
from app.search import dense, lexical
from app.search.fuse import fuse

DEPTH = 100  # candidates of each path
JUDGED = 50  # fused candidates whose closeness decides whether there is an answer

_SIGNALS = text("""
    SELECT 1 - (embedding <=> :vector) AS cosine, 1 - (embedding <=> :neutral) AS neutral,
           ARRAY(SELECT t FROM unnest(terms) t WHERE t = ANY(:terms)) AS covered
    FROM chunk_index WHERE chunk_id = ANY(:chunks)
""")


@dataclass(frozen=True, slots=True)
class Question:
    """A query as the index sees it: its vector (shape (384,), normalised) and its distinct terms."""

    vector: NDArray[np.float32]
    terms: list[int]


async def find(
    transaction: Transaction, scope: AccessScope, collection: str | None, question: Question, floor: Floor, limit: int
) -> list[tuple[UUID, float]]:
    """The best `limit` chunks as (id, score); none where the floor finds that not even the closest is about it."""
    classes = scope.classes(collection)
    if not classes:
        return []
    known = await lexical.statistics(transaction, classes, question.terms)
    fused = fuse(
        await dense.nearest(transaction, classes, question.vector, DEPTH),
        await lexical.best(transaction, classes, question.terms, known, DEPTH),
    )
    judged = [chunk for chunk, _ in fused[:JUDGED]]
    return fused[:limit] if await _admitted(transaction, question, judged, known, floor) else []


async def _admitted(
    transaction: Transaction, question: Question, judged: list[UUID], known: lexical.Statistics, floor: Floor
) -> bool:
    values = {
        "vector": HalfVector(question.vector),
        "neutral": HalfVector(floor.neutral(question.vector)),
        "terms": question.terms,
        "chunks": judged,
    }
    rows = await transaction.connection.execute(_SIGNALS, values)
    bar = floor.bar(len(question.terms), known.chunks)
    return any(bar.admits(row.cosine, known.coverage(question.terms, row.covered), row.neutral) for row in rows)
