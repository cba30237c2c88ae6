"""The relevance floor: whether the best that was found is about the query at all, or the outcome is `empty`.

Cosines of the embedding model crowd between .7 and .93 whatever they compare, so no threshold on them means anything.
Two clauses do; a candidate that meets one of them admits the query (docs/decisions/0003-relevance-floor.md):

- *words and meaning*: `cosine + weight * coverage >= near`, for candidates that cover a little of the query;
- *meaning across languages*: `neutral >= neutral_near`, for queries of more than one term. `neutral` is the cosine
  after the directions that tell languages apart are taken out of the query, for pairs that share no word.

The best of many is closer by chance than the best of few, so both levels rise with the logarithm of the scope's size.
Everything else is fixed with the model: nothing depends on any text, and on no size but that of the caller's scope.
"""

import json
import math
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import ConfigurationError, NotConfigured

FILE = "calibration.json"


@dataclass(frozen=True, slots=True)
class Level:
    """What was calibrated at one size of scope; both levels are cosines."""

    chunks: int
    near: float
    neutral_near: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The operating point. `least_coverage` is a share of the query's idf mass, `least_terms` a number of terms."""

    weight: float
    least_coverage: float
    least_terms: int
    small: Level
    large: Level

    def at(self, chunks: int) -> Level:
        """The levels for a scope of `chunks`: between the two sizes by logarithm, beyond them those of the nearer."""
        low, high = math.log(self.small.chunks), math.log(self.large.chunks)
        share = min(max((math.log(max(chunks, 1)) - low) / (high - low), 0.0), 1.0)
        near = self.small.near + share * (self.large.near - self.small.near)
        neutral_near = self.small.neutral_near + share * (self.large.neutral_near - self.small.neutral_near)
        return Level(chunks, near, neutral_near)


@dataclass(frozen=True, slots=True)
class Bar:
    """The floor as it stands for one query over one scope."""

    weight: float
    least_coverage: float
    near: float
    neutral_near: float

    def admits(self, cosine: float, coverage: float, neutral: float) -> bool:
        """Whether one candidate is about the query; a query is answered if any of its candidates is.

        `cosine` and `neutral` are inner products of the candidate's vector with the query's and with
        `Floor.neutral(query)`; `coverage` (0..1) is the share of the query's idf mass, over the caller's scope, whose
        terms the candidate holds (terms unknown to the scope weigh most). Never falls when a signal rises.
        """
        by_words = coverage >= self.least_coverage and cosine + self.weight * coverage >= self.near
        return by_words or neutral >= self.neutral_near


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
                return cls(str(entry["revision"]), _thresholds(entry["thresholds"]), languages)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError("The relevance floor's calibration file is damaged; reinstall.") from error
        raise NotConfigured("The relevance floor is not calibrated for this embedding model.")

    def neutral(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """`query` (dimension,) without what tells languages apart, of length 1: its inner product with a stored
        passage vector is the `neutral` of `Bar.admits`.
        """
        rest = query - self.languages.T @ (self.languages @ query)
        length = float(np.linalg.norm(rest))
        return (rest / length if length > 1e-6 else np.zeros_like(rest)).astype(np.float32)

    def bar(self, query_terms: int, chunks: int) -> Bar:
        """What a query of so many distinct terms has to reach over a scope of so many chunks."""
        at = self.thresholds
        level = at.at(chunks)
        neutral_near = level.neutral_near if query_terms >= at.least_terms else math.inf
        return Bar(at.weight, at.least_coverage, level.near, neutral_near)


def _thresholds(entry: dict[str, Any]) -> Thresholds:
    return Thresholds(**{**entry, "small": Level(**entry["small"]), "large": Level(**entry["large"])})
