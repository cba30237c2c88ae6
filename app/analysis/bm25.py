"""The document side of BM25 (Robertson & Zaragoza 2009), computed once when a chunk is indexed."""

from collections import Counter
from collections.abc import Sequence

K1 = 1.2
B = 0.75
REFERENCE_LENGTH = 120  # terms; a constant, since an average over the corpus would let hidden documents move scores


def weights(terms: Sequence[int]) -> dict[int, float]:
    """For each distinct term of one chunk, what its occurrences contribute before the query's idf."""
    norm = K1 * (1 - B + B * len(terms) / REFERENCE_LENGTH)
    return {term: count * (K1 + 1) / (count + norm) for term, count in Counter(terms).items()}
