"""The oracle: the permission model written down as plainly as possible, slow and obvious. Only tests use it.

It knows nothing of SQL, Casbin or caches. A policy is a list of rows as the tables hold them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from app.domain.access import AccessClass, Action
from app.domain.principal import Principal


@dataclass(frozen=True, slots=True)
class MembershipRow:
    """`member` is in `container` from `valid_from` until `valid_until`; said at `granted_at`, until revoked."""

    member_kind: str
    member: str
    container_kind: str
    container: str
    granted_at: datetime
    valid_from: datetime
    valid_until: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GrantRow:
    """One rule; `resource` is named as `AccessClass.resources` names it."""

    subject_kind: str
    subject: str
    action: str
    effect: str
    resource: str
    granted_at: datetime
    valid_from: datetime
    valid_until: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything there is to know, at one moment."""

    memberships: tuple[MembershipRow, ...]
    grants: tuple[GrantRow, ...]
    slugs: dict[str, str]
    """Collection id to slug."""


def allows(
    policy: Policy, principal: Principal, action: Action, wanted: AccessClass, at: datetime, *, now: bool = False
) -> bool:
    """Whether `principal` may do `action` on documents of the class `wanted` at the moment `at`.

    With `now`, `at` is the reader's own clock and the policy what it sees: a row revoked there is revoked, even if
    the revoking transaction began, by its own clock, after the reader did.
    """
    return all(_party_may(policy, party, action, wanted, at, now) for party in principal.parties)


def _party_may(policy: Policy, party: Principal, action: Action, wanted: AccessClass, at: datetime, now: bool) -> bool:
    bounds = party.narrowing
    if bounds is not None and bounds.actions is not None and action not in bounds.actions:
        return False
    slug = policy.slugs[str(wanted.collection_id)]
    if bounds is not None and bounds.collections is not None and slug not in bounds.collections:
        return False
    subjects = _everything_it_is(policy.memberships, party, at, now)
    effects = [
        grant.effect
        for grant in policy.grants
        if (grant.subject_kind, grant.subject) in subjects
        and grant.action == action.value
        and grant.resource in wanted.resources
        and _in_force(grant, at, now)
    ]
    return "allow" in effects and "deny" not in effects


def _everything_it_is(
    memberships: Iterable[MembershipRow], party: Principal, at: datetime, now: bool
) -> set[tuple[str, str]]:
    found = {("principal", party.key), *(("group", group) for group in party.group_keys)}
    while True:
        further = {
            (row.container_kind, row.container)
            for row in memberships
            if (row.member_kind, row.member) in found and _in_force(row, at, now)
        }
        if further <= found:
            return found
        found |= further


def _in_force(row: MembershipRow | GrantRow, at: datetime, now: bool) -> bool:
    said = now or row.granted_at <= at
    begun = row.valid_from <= at
    ended = row.valid_until is not None and row.valid_until <= at
    revoked = row.revoked_at is not None and (now or row.revoked_at <= at)
    return said and begun and not ended and not revoked
