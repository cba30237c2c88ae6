"""`compile(principal, action)`: the only constructor of an `AccessScope`.

The rules that touch a class are found by one query; whether they permit it is Casbin's verdict. Classes whose rules
have the same effects get the same verdict, so Casbin is asked once for each such kind (there are at most three).
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from uuid import UUID

from app.authz import casbin_policy
from app.authz.rules import LoadedRules, load, party
from app.db.session import Transaction
from app.domain.access import (
    SYSTEM,
    AccessScope,
    Action,
    Effect,
    ScopedCollection,
    collection_resource,
    within,
)
from app.domain.principal import Principal

CACHE_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """A scope, and the moment by the clock of the transaction that compiled it. Another's clock may be earlier."""

    scope: AccessScope
    since: datetime

    def stands(self, transaction: Transaction) -> bool:
        expires_at = self.scope.expires_at
        timely = self.since <= transaction.at and (expires_at is None or transaction.at < expires_at)
        return timely and self.scope.policy_version == transaction.policy_version


class Authority:
    """Compiles scopes, and keeps each for as long as the rules it came from stand. One per process."""

    def __init__(self, cache_size: int = CACHE_SIZE) -> None:
        self._kept: OrderedDict[tuple[Principal, Action], _Kept] = OrderedDict()
        self._size = cache_size
        self._lock = Lock()

    async def compile(self, transaction: Transaction, principal: Principal, action: Action) -> AccessScope:
        """What `principal` may use for `action`, by the rules in the transaction's own snapshot.

        A kept scope is used only at the policy version it was compiled from, not before the moment it was compiled
        for, and not past the next moment at which a rule begins or ends; in a transaction that writes, whose rules
        may never be committed, none is used or kept.
        Raises what reading the database raises.
        """
        if not transaction.snapshot:
            return await compile_scope(transaction, principal, action)
        kept = self._kept.get((principal, action))
        if kept is not None and kept.stands(transaction):
            return kept.scope
        scope = await compile_scope(transaction, principal, action)
        with self._lock:
            self._kept[principal, action] = _Kept(scope, transaction.at)
            self._kept.move_to_end((principal, action))
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return scope


async def compile_scope(
    transaction: Transaction, principal: Principal, action: Action, *, at: datetime | None = None
) -> AccessScope:
    """Compile without keeping, by the rules of now or of `at`; with an actor, what all parties have in common."""
    scope, *others = [
        of_subject(principal, action, await load(transaction, party(one), action, at=at), transaction.policy_version)
        for one in principal.parties
    ]
    for other in others:
        scope = _intersection(scope, other)
    return scope


def of_subject(principal: Principal, action: Action, loaded: LoadedRules, policy_version: int) -> AccessScope:
    """The scope that loaded rules make, decided by Casbin; `principal` is whom it will be used for."""
    asked: dict[frozenset[Effect] | None, tuple[str, ...]] = {None: (SYSTEM,)}
    asked |= {effects: example.resources for effects, example in loaded.examples.items()}
    verdicts = casbin_policy.verdicts(loaded.rules, action, asked)
    reached = _reached(action, loaded)
    classes: dict[UUID, list[int]] = {id_: [] for id_ in reached}
    for touched in loaded.classes:
        if verdicts[touched.effects] and touched.collection_id in reached:
            classes[touched.collection_id] += touched.ids
    return AccessScope(
        principal=principal,
        action=action,
        policy_version=policy_version,
        collections={slug: ScopedCollection(id_, slug, tuple(sorted(classes[id_]))) for id_, slug in reached.items()},
        system=within(loaded.rules.bounds, action) and verdicts[None],
        parties=(loaded.rules,),
        expires_at=loaded.expires_at,
    )


def _reached(action: Action, loaded: LoadedRules) -> dict[UUID, str]:
    """Collections that an allow rule reaches in whole or in part, save those that a deny covers whole."""
    allowing = [rule for rule in loaded.rules.rules if rule.effect is Effect.ALLOW]
    everywhere = any(rule.resource == SYSTEM for rule in allowing)
    allowed = {rule.collection_id for rule in allowing}
    denied = {rule.resource for rule in loaded.rules.rules if rule.effect is Effect.DENY}
    return {
        id_: slug
        for id_, slug in loaded.collections.items()
        if (everywhere or id_ in allowed)
        and within(loaded.rules.bounds, action, slug)
        and denied.isdisjoint((SYSTEM, collection_resource(id_)))
    }


def _intersection(one: AccessScope, other: AccessScope) -> AccessScope:
    """What both may use. The result is the first's scope narrowed by the second's, never more than either."""
    ends = [end for end in (one.expires_at, other.expires_at) if end is not None]
    return AccessScope(
        principal=one.principal,
        action=one.action,
        policy_version=one.policy_version,
        collections={
            slug: ScopedCollection(
                part.id, slug, tuple(sorted(set(part.classes) & set(other.collections[slug].classes)))
            )
            for slug, part in one.collections.items()
            if slug in other.collections
        },
        system=one.system and other.system,
        parties=(*one.parties, *other.parties),
        expires_at=min(ends, default=None),
    )
