"""Why, for owners and auditors: the same compilation as a search's, with its reasons. Never for the caller itself."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from app.authz.casbin_policy import permits
from app.authz.check import require
from app.authz.compile import Authority
from app.authz.rules import LoadedRules, Subject, load
from app.db.session import Transaction
from app.domain.access import (
    SYSTEM,
    AccessClass,
    Action,
    Edge,
    ScopedCollection,
    collection_resource,
    document_resource,
    label_resource,
)
from app.domain.principal import Principal
from app.errors import Denied, InsufficientScope, InvalidRequest, NotFound

_GRANTS = text("""
    SELECT id, effect, resource_kind, label, document_id, valid_from, valid_until, reason, granted_by
    FROM grants WHERE id = ANY(:ids) ORDER BY effect DESC, granted_at, id
""")
# The class that a document was in at a moment: ids alone, so that an auditor, who reads no document, may ask.
_CLASS_AT = text("""
    SELECT a.id, a.collection_id, a.labels, a.document_id, k.slug
    FROM document_classes h JOIN access_classes a ON a.id = h.class_id JOIN collections k ON k.id = a.collection_id
    WHERE h.document_id = :document AND h.since <= coalesce(CAST(:at AS timestamptz), clock_timestamp())
    ORDER BY h.since DESC LIMIT 1
""")


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked about: a document, or a label or the whole of a collection."""

    collection: str | None = None
    label: str | None = None
    document: UUID | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule that matched, and how the subject came by it: names from the subject to the rule's own subject."""

    grant: UUID
    effect: str
    on: str
    via: tuple[str, ...]
    valid_from: datetime
    valid_until: datetime | None
    reason: str
    granted_by: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict, and every rule that matched."""

    allowed: bool
    subject: str
    action: str
    collection: str
    policy_version: int
    reasons: tuple[Reason, ...]


async def explain(
    transaction: Transaction,
    authority: Authority,
    by: Principal,
    subject: Subject,
    action: Action,
    target: Target,
    at: datetime | None = None,
) -> Explanation:
    """Why `subject` may or may not do `action` on `target`, now or `at` a moment.

    Raises `InvalidRequest`; `NotFound` or `Denied` unless `by` manages or audits the collection.
    """
    slug, resources = await located(transaction, authority, by, target, at)
    loaded = await load(transaction, subject, action, at=at)
    return Explanation(
        allowed=permits(loaded.rules, action, resources),
        subject=subject.qualified,
        action=action.value,
        collection=slug,
        policy_version=transaction.policy_version,
        reasons=await _reasons(transaction, loaded, resources),
    )


async def located(
    transaction: Transaction, authority: Authority, by: Principal, target: Target, at: datetime | None
) -> tuple[str, tuple[str, ...]]:
    """The collection's slug and the resources that rules could reach `target` by. Raises as `explain` does."""
    # The collection that was named is asked about first: to who has no insight there, a document of it and an id that
    # nothing has must be the same.
    named = None
    if target.collection is not None:
        named = await require_insight(authority, transaction, by, target.collection)
    if target.document is not None:
        return await _document(transaction, authority, by, target, target.document, at)
    if named is None or target.collection is None:
        raise InvalidRequest("collection", "missing", allowed="a collection's slug, or a document's id")
    names = [SYSTEM, collection_resource(named.id)]
    return target.collection, tuple(names + ([label_resource(named.id, target.label)] if target.label else []))


async def _document(
    transaction: Transaction, authority: Authority, by: Principal, target: Target, id_: UUID, at: datetime | None
) -> tuple[str, tuple[str, ...]]:
    own = await class_at(transaction, id_, at)
    if own is None or target.collection not in (None, own[0]):
        raise NotFound
    if target.collection is None:
        await require_insight(authority, transaction, by, own[0], hidden=True)
    return own[0], own[1].resources


async def class_at(transaction: Transaction, document: UUID, at: datetime | None) -> tuple[str, AccessClass] | None:
    """The collection's slug and the access class that a document was in; None for one that did not exist."""
    row = (await transaction.connection.execute(_CLASS_AT, {"document": document, "at": at})).one_or_none()
    if row is None:
        return None
    return row.slug, AccessClass(row.id, row.collection_id, tuple(row.labels), row.document_id)


async def require_insight(
    authority: Authority, transaction: Transaction, by: Principal, slug: str, *, hidden: bool = False
) -> ScopedCollection:
    """The collection, if `by` manages or audits it. With `hidden`, whoever does not is told `NotFound` in any case:
    the answer about a document's id must not tell in which collection it is.
    """
    audits = await authority.compile(transaction, by, Action.AUDIT)
    if slug in audits.collections:
        return audits.collections[slug]
    try:
        return await require(authority, transaction, by, Action.MANAGE, slug)
    except (Denied, InsufficientScope):
        if hidden:
            raise NotFound from None
        raise


async def _reasons(transaction: Transaction, loaded: LoadedRules, resources: Iterable[str]) -> tuple[Reason, ...]:
    reached = set(resources)
    matched = {rule.id: rule for rule in loaded.rules.rules if rule.resource in reached}
    rows = await transaction.connection.execute(_GRANTS, {"ids": list(matched)})
    return tuple(
        Reason(
            grant=row.id,
            effect=row.effect,
            on=_named(row.resource_kind, row.label, row.document_id),
            via=chain(loaded.rules.subject, matched[row.id].subject, loaded.rules.edges),
            valid_from=row.valid_from,
            valid_until=row.valid_until,
            reason=row.reason,
            granted_by=row.granted_by,
        )
        for row in rows
    )


def _named(kind: str, label: str | None, document: UUID | None) -> str:
    return {"label": f"label:{label}", "document": document_resource(document) if document else ""}.get(kind, kind)


def chain(start: str, end: str, edges: Iterable[Edge]) -> tuple[str, ...]:
    """The shortest way of memberships from `start` to `end`, both included."""
    above: dict[str, list[str]] = {}
    for edge in edges:
        above.setdefault(edge.member, []).append(edge.container)
    ways: deque[tuple[str, ...]] = deque([(start,)])
    seen = {start}
    while ways:
        way = ways.popleft()
        if way[-1] == end:
            return way
        for container in sorted(set(above.get(way[-1], [])) - seen):
            seen.add(container)
            ways.append((*way, container))
    return (start,)
