"""The dense path: nearest chunks by cosine, over the caller's classes and nothing else."""

from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from sqlalchemy import text

from app.db.session import Transaction

# "+ 0" keeps the planner from any shared approximate index: the scan is led by class, and exact.
_NEAREST = text("""
    SELECT chunk_id FROM chunk_index
    WHERE class_id = ANY(:classes) AND live_from IS NOT NULL AND live_until IS NULL
    ORDER BY (embedding <=> :vector) + 0, chunk_id LIMIT :limit
""")


async def nearest(transaction: Transaction, classes: list[int], vector: NDArray[np.float32], limit: int) -> list[UUID]:
    """The `limit` chunks of `classes` nearest to `vector` (shape (384,), normalised), nearest first."""
    values = {"classes": classes, "vector": HalfVector(vector), "limit": limit}
    return list((await transaction.connection.execute(_NEAREST, values)).scalars())
