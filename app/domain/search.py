"""What a caller asks and what it gets. Pure types."""

from dataclasses import dataclass

from app.domain.documents import Fragment

QUERY_MAX = 2000
LIMIT_MAX = 50
LIMIT_DEFAULT = 10


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A checked question. `collection` is the caller's own narrowing (a slug), never a right."""

    query: str
    collection: str | None = None
    limit: int = LIMIT_DEFAULT


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Fragments in falling order of score; none means `empty`. `corpus_versions` are the editions searched."""

    fragments: tuple[Fragment, ...]
    corpus_versions: tuple[str, ...]
