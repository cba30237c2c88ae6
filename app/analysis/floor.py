"""The relevance floor: whether the best that was found is about the query at all, or the outcome is `empty`.

Cosines of the embedding model crowd between .7 and .93 whatever they compare, so no threshold on them means anything.
Two clauses do; a candidate that meets one of them admits the query (docs/decisions/0003-relevance-floor.md):

- *words and meaning*: `cosine + weight * coverage >= near`, for candidates that cover a little of the query;
- *meaning across languages*: `neutral >= neutral_near`, for queries of more than one term. `neutral` is the cosine
  after the directions that tell languages apart are taken out of the query, for pairs that share no word.

Everything is fixed with the model: nothing here depends on any corpus, so nothing hidden can move it.
"""

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import ConfigurationError, NotConfigured

FILE = "calibration.json"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The operating point. All are cosines or shares between 0 and 1, save `least_terms`, a number of terms."""

    weight: float
    near: float
    least_coverage: float
    neutral_near: float
    least_terms: int


@dataclass(frozen=True, slots=True)
class Floor:
    """Calibrated for the vectors of one model; `languages` (k, dimension) are orthonormal directions."""

    revision: str
    thresholds: Thresholds
    languages: NDArray[np.float32]

    @classmethod
    def load(cls, model: str) -> "Floor":
        """The shipped calibration of `model`.

        Errors: NotConfigured if it was never calibrated for that model; ConfigurationError if the file is damaged.
        """
        try:
            shipped: dict[str, Any] = json.loads(resources.files(__package__).joinpath(FILE).read_bytes())
            entry = shipped.get(model)
            if entry is not None:
                languages = np.array(entry["languages"], np.float32)
                return cls(str(entry["revision"]), Thresholds(**entry["thresholds"]), languages)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError("The relevance floor's calibration file is damaged; reinstall.") from error
        raise NotConfigured("The relevance floor is not calibrated for this embedding model.")

    def neutral(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """`query` (dimension,) without what tells languages apart, of length 1: its inner product with a stored
        passage vector is the `neutral` of `admits`.
        """
        rest = query - self.languages.T @ (self.languages @ query)
        length = float(np.linalg.norm(rest))
        return (rest / length if length > 1e-6 else np.zeros_like(rest)).astype(np.float32)

    def admits(self, cosine: float, coverage: float, neutral: float, query_terms: int) -> bool:
        """Whether one candidate is about the query; a query is answered if any of its candidates is.

        `cosine` and `neutral` are inner products of the candidate's vector with the query's and with `neutral(query)`;
        `coverage` (0..1) is the share of the query's idf mass, over the caller's scope, whose terms the candidate
        holds (terms unknown to the scope weigh most); `query_terms` counts the query's distinct terms. Never falls
        when a signal rises.
        """
        at = self.thresholds
        by_words = coverage >= at.least_coverage and cosine + at.weight * coverage >= at.near
        return by_words or (query_terms >= at.least_terms and neutral >= at.neutral_near)
