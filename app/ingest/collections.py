"""Collections: made, listed, described."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from app.authz.check import require, require_system
from app.authz.compile import Authority
from app.db.session import Transaction
from app.domain.access import SLUG, Action
from app.domain.principal import Principal, is_principal_key
from app.errors import Conflict, InvalidRequest, NotFound

_INSERT = text("""
    INSERT INTO collections (slug, title, owner, purge_confirmer) VALUES (:slug, :title, :owner, :confirmer)
    ON CONFLICT DO NOTHING RETURNING id
""")
_GIVE = text("""
    INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, collection_id, reason, granted_by)
    SELECT 'principal', CAST(:subject AS text), unnest(CAST(:actions AS text[])), 'allow', 'collection', :collection,
           CAST(:reason AS text), CAST(:by AS text)
""")
_TAKE = text("""
    UPDATE grants SET revoked_at = now(), revoked_by = :by
    WHERE collection_id = :collection AND reason = ANY(:reasons) AND revoked_at IS NULL
""")
_APPOINT = text("UPDATE collections SET owner = :owner, purge_confirmer = :confirmer WHERE id = :collection")
_COLUMNS = "slug, title, owner, purge_confirmer, slug || '@' || corpus_version"
_PAGE = text(f"""
    SELECT {_COLUMNS} FROM collections
    WHERE id = ANY(:ids) AND slug > :after ORDER BY slug LIMIT :limit
""")
_ONE = text(f"SELECT {_COLUMNS} FROM collections WHERE id = ANY(:ids) AND slug = :slug")
TITLE_MAX = 200


@dataclass(frozen=True, slots=True)
class CollectionCard:
    """A collection as it is shown; `corpus_version` is its present edition, `slug@0` before the first publish."""

    slug: str
    title: str
    owner: str
    purge_confirmer: str | None
    corpus_version: str


OWNER_REASON = "owner of the collection"
CONFIRMER_REASON = "confirms purges of the collection"


@dataclass(frozen=True, slots=True)
class Custodians:
    """Who runs a collection, and who confirms that an edition is purged: never the same person."""

    owner: str
    purge_confirmer: str | None = None


@dataclass(frozen=True, slots=True)
class NewCollection:
    """A collection to be made; who makes it owns it. `purge_confirmer` may be named later."""

    slug: str
    title: str
    purge_confirmer: str | None = None


async def create(
    transaction: Transaction, authority: Authority, by: Principal, wanted: NewCollection, owned: tuple[Action, ...]
) -> CollectionCard:
    """Make an empty collection; who makes it owns it, by `owned` grants that are ordinary rules.

    Raises `InvalidRequest`, `Denied`, and `Conflict` for a slug that is taken.
    """
    if SLUG.fullmatch(wanted.slug) is None:
        raise InvalidRequest("slug", "not a slug", allowed="1..63 of a-z, 0-9 and -, not starting with -")
    if not wanted.title.strip() or len(wanted.title) > TITLE_MAX:
        raise InvalidRequest("title", "empty or too long", allowed=f"1..{TITLE_MAX} characters")
    custodians = _checked(Custodians(by.key, wanted.purge_confirmer))
    await require_system(authority, transaction, by, Action.CREATE)
    values = {"slug": wanted.slug, "title": wanted.title, "owner": by.key, "confirmer": wanted.purge_confirmer}
    made = (await transaction.connection.execute(_INSERT, values)).first()
    if made is None:
        raise Conflict("A collection with this slug exists.")
    await _give(transaction, by, made.id, custodians, owned)
    return CollectionCard(wanted.slug, wanted.title, by.key, wanted.purge_confirmer, f"{wanted.slug}@0")


async def appoint(
    transaction: Transaction,
    authority: Authority,
    by: Principal,
    slug: str,
    wanted: Custodians,
    owned: tuple[Action, ...],
) -> CollectionCard:
    """Hand a collection over: what its custodians held as such ends, and the new ones get it, in one transaction.

    Raises `InvalidRequest`, and `NotFound` or `Denied` where `by` may not manage it.
    """
    collection = (await require(authority, transaction, by, Action.MANAGE, slug)).id
    _checked(wanted)
    values = {"collection": collection, "owner": wanted.owner, "confirmer": wanted.purge_confirmer}
    await transaction.connection.execute(_APPOINT, values)
    taken = {"collection": collection, "reasons": [OWNER_REASON, CONFIRMER_REASON], "by": by.key}
    await transaction.connection.execute(_TAKE, taken)
    await _give(transaction, by, collection, wanted, owned)
    row = (await transaction.connection.execute(_ONE, {"ids": [collection], "slug": slug})).one()
    return CollectionCard(*row)


def _checked(wanted: Custodians) -> Custodians:
    for field, name in (("owner", wanted.owner), ("purge_confirmer", wanted.purge_confirmer)):
        if name is not None and not is_principal_key(name):
            raise InvalidRequest(field, "not a principal", allowed="a local subject, or issuer|subject")
    if wanted.owner == wanted.purge_confirmer:
        raise InvalidRequest("purge_confirmer", "the owner", allowed="somebody else than the owner")
    return wanted


async def _give(
    transaction: Transaction, by: Principal, collection: UUID, to: Custodians, owned: tuple[Action, ...]
) -> None:
    confirms = [Action.PURGE] if to.purge_confirmer else []
    for subject, actions, reason in (
        (to.owner, owned, OWNER_REASON),
        (to.purge_confirmer, confirms, CONFIRMER_REASON),
    ):
        values = {"subject": subject, "actions": [action.value for action in actions], "reason": reason}
        await transaction.connection.execute(_GIVE, {**values, "collection": collection, "by": by.key})


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
