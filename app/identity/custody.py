"""Who may make, see and end whose tokens: everybody their own, who manages the whole system everybody's."""

from collections.abc import Collection
from datetime import UTC, datetime

from app.authz.check import require_system
from app.authz.compile import Authority
from app.db.session import Transaction
from app.domain.access import SLUG, Action
from app.domain.principal import Narrowing, Principal
from app.errors import InsufficientScope, InvalidRequest
from app.identity import tokens
from app.identity.tokens import IssuedToken, NewToken, TokenCard

NAME_MAX = 200


def bounds(
    actions: Collection[str] | None, collections: Collection[str] | None, expires_at: datetime | None
) -> Narrowing:
    """What a token is to be narrowed to, from words as they came. Raises `InvalidRequest`."""
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise InvalidRequest("expires_at", "in the past", allowed="a moment to come")
    if set(actions or ()) - set(Action):
        raise InvalidRequest("actions", "not actions", allowed=", ".join(Action))
    if any(SLUG.fullmatch(slug) is None for slug in collections or ()):
        raise InvalidRequest("collections", "not slugs", allowed="slugs of collections")
    return Narrowing(
        None if actions is None else frozenset(map(Action, actions)),
        None if collections is None else frozenset(collections),
        expires_at,
    )


async def issue(transaction: Transaction, authority: Authority, by: Principal, wanted: NewToken) -> IssuedToken:
    """Make a token, for oneself or (who manages the system) for another.

    A token that is narrowed, or in an agent's hand, makes no further one: its copy would outlive its revocation.
    Raises `InvalidRequest`, `Denied`, `InsufficientScope`.
    """
    if by.actor is not None or _narrowed(by):
        raise InsufficientScope(Action.MANAGE)
    if not 1 <= len(wanted.name.strip()) <= NAME_MAX:
        raise InvalidRequest("name", "empty or too long", allowed=f"1..{NAME_MAX} characters")
    if wanted.subject != by.key:
        await require_system(authority, transaction, by, Action.MANAGE)
    return await tokens.issue(transaction, wanted, by)


async def listed(
    transaction: Transaction, authority: Authority, by: Principal, subject: str | None, *, after: str, limit: int
) -> list[TokenCard]:
    """The tokens of `subject`; for None those of everybody, or one's own where one may see no others.

    Raises `Denied` for another's, `InsufficientScope` to a narrowed token.
    """
    if not (await authority.compile(transaction, by, Action.MANAGE)).system:
        own = _own(by)
        if subject not in (None, own):
            await require_system(authority, transaction, by, Action.MANAGE)
        subject = own
    return await tokens.listed(transaction, subject, after=after, limit=limit)


async def revoke(transaction: Transaction, authority: Authority, by: Principal, id_: str) -> None:
    """End one of one's own tokens; who manages the system, anybody's. Raises `NotFound`, `InsufficientScope`."""
    everybody = (await authority.compile(transaction, by, Action.MANAGE)).system
    await tokens.revoke(transaction, id_, by=by, subject=None if everybody else _own(by))


def _own(by: Principal) -> str:
    """The subject whose tokens are one's own; no local subject holds a `|`, so a foreign caller has none.

    A token that is narrowed, or in an agent's hand, may not look at, or end, the wider ones beside it.
    """
    if by.actor is not None or _narrowed(by):
        raise InsufficientScope(Action.MANAGE)
    return by.key


def _narrowed(by: Principal) -> bool:
    return by.narrowing is not None and (by.narrowing.actions, by.narrowing.collections) != (None, None)
