"""Reciprocal rank fusion: Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet …" (2009)."""

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

K = 60


def fuse(*rankings: Sequence[UUID]) -> list[tuple[UUID, float]]:
    """Merge rankings (best first) into one of (id, score), by falling score, ties by id."""
    scores: dict[UUID, float] = defaultdict(float)
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            scores[id_] += 1 / (K + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
