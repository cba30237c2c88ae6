"""Collections: made, listed, described."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from app.authz.check import require_system
from app.authz.compile import Authority
from app.db.session import Transaction
from app.domain.access import SLUG, Action
from app.domain.principal import Principal
from app.errors import Conflict, InvalidRequest, NotFound

_INSERT = text("""
    INSERT INTO collections (slug, title, owner) VALUES (:slug, :title, :owner) ON CONFLICT DO NOTHING RETURNING id
""")
_OWN = text("""
    INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, collection_id, reason, granted_by)
    SELECT 'principal', :owner, unnest(CAST(:actions AS text[])), 'allow', 'collection', :collection,
           'owner of the collection', :owner
""")
_PAGE = text("""
    SELECT slug, title, owner, corpus_version FROM collections
    WHERE id = ANY(:ids) AND slug > :after ORDER BY slug LIMIT :limit
""")
_ONE = text("SELECT slug, title, owner, corpus_version FROM collections WHERE id = ANY(:ids) AND slug = :slug")
TITLE_MAX = 200


@dataclass(frozen=True, slots=True)
class CollectionCard:
    """A collection as it is shown."""

    slug: str
    title: str
    owner: str
    corpus_version: int


async def create(
    transaction: Transaction, authority: Authority, by: Principal, slug: str, title: str, owned: tuple[Action, ...]
) -> CollectionCard:
    """Make an empty collection; who makes it owns it, by `owned` grants that are ordinary rules.

    Raises `InvalidRequest`, `Denied`, and `Conflict` for a slug that is taken.
    """
    if SLUG.fullmatch(slug) is None:
        raise InvalidRequest("slug", "not a slug", allowed="1..63 of a-z, 0-9 and -, not starting with -")
    if not title.strip() or len(title) > TITLE_MAX:
        raise InvalidRequest("title", "empty or too long", allowed=f"1..{TITLE_MAX} characters")
    await require_system(authority, transaction, by, Action.CREATE)
    made = (await transaction.connection.execute(_INSERT, {"slug": slug, "title": title, "owner": by.key})).first()
    if made is None:
        raise Conflict("A collection with this slug exists.")
    values = {"owner": by.key, "actions": [action.value for action in owned], "collection": made.id}
    await transaction.connection.execute(_OWN, values)
    return CollectionCard(slug, title, by.key, 0)


async def listed(
    transaction: Transaction, authority: Authority, by: Principal, *, after: str, limit: int
) -> list[CollectionCard]:
    """The collections that `by` may search or run, by slug; nothing else exists for `by`."""
    rows = await transaction.connection.execute(
        _PAGE, {"ids": await _visible(transaction, authority, by), "after": after, "limit": limit}
    )
    return [CollectionCard(*row) for row in rows]


async def shown(transaction: Transaction, authority: Authority, by: Principal, slug: str) -> CollectionCard:
    """One collection. Raises `NotFound` unless `by` may search or run it."""
    values = {"ids": await _visible(transaction, authority, by), "slug": slug}
    row = (await transaction.connection.execute(_ONE, values)).one_or_none()
    if row is None:
        raise NotFound
    return CollectionCard(*row)


async def _visible(transaction: Transaction, authority: Authority, by: Principal) -> list[UUID]:
    scopes = [
        await authority.compile(transaction, by, action) for action in (Action.SEARCH, Action.MANAGE, Action.INGEST)
    ]
    return list({part.id for scope in scopes for part in scope.collections.values()})
