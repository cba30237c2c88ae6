"""The check of one resource, and the third look at each document about to be returned."""

from app.authz.casbin_policy import permits
from app.authz.compile import Authority
from app.db.session import Transaction
from app.domain.access import AccessClass, AccessScope, Action, ScopedCollection, within
from app.domain.principal import Principal
from app.errors import Denied, InsufficientScope, NotFound


def still_permits(scope: AccessScope, collection: str, access_class: AccessClass) -> bool:
    """Ask Casbin once more, for one class as the text tables tell it, about every party to the call."""
    return all(
        within(known.bounds, scope.action, collection) and permits(known, scope.action, access_class.resources)
        for known in scope.parties
    )


_SEEING = (Action.SEARCH, Action.MANAGE, Action.INGEST, Action.PUBLISH, Action.AUDIT)


async def require(
    authority: Authority, transaction: Transaction, principal: Principal, action: Action, slug: str
) -> ScopedCollection:
    """The collection, if `principal` may do `action` there.

    Raises `NotFound` to the outsider, for whom it does not exist; `Denied` to the insider, who may see but not do;
    `InsufficientScope` to an insider whose token was narrowed to other actions.
    """
    scope = await authority.compile(transaction, principal, action)
    if slug in scope.collections:
        return scope.collections[slug]
    for seen_by in _SEEING:
        if slug in (await authority.compile(transaction, principal, seen_by)).collections:
            raise refusal(principal, action)
    raise NotFound


async def require_system(authority: Authority, transaction: Transaction, principal: Principal, action: Action) -> None:
    """Pass if `principal` may do `action` on the whole system; raises `Denied` otherwise."""
    if not (await authority.compile(transaction, principal, action)).system:
        raise refusal(principal, action)


def refusal(principal: Principal, action: Action) -> Denied | InsufficientScope:
    """Why an insider may not: by the rules, or because its token was narrowed to other actions."""
    return Denied() if is_for(principal, action) else InsufficientScope(action)


def is_for(principal: Principal, action: Action) -> bool:
    """Whether the credential of `principal` is for `action` at all, whatever the rules say."""
    bounds = principal.narrowing
    return bounds is None or bounds.actions is None or action in bounds.actions
