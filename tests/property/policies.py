"""Random policies: rows of rules, the callers who are asked about, and moments; all drawn by Hypothesis, so all shrink.

Moments are microseconds from a base, the reader's own `now()`: bounds fall before, after and exactly upon it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from app.authz.reference import GrantRow, MembershipRow, Policy
from app.domain.access import (
    SYSTEM,
    AccessClass,
    Action,
    Effect,
    collection_resource,
    document_resource,
    label_resource,
)
from app.domain.principal import LOCAL_ISSUER, Narrowing, Principal, principal_key

T = TypeVar("T")
# The same examples in every run of the tests; time is bounded by their number.
STEADY = settings(
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
HOUR = 3_600_000_000
# Far and near, upon a moment and a microsecond beside it: whatever is off by one comes out.
PAST = (-50 * HOUR, -20 * HOUR, -2 * HOUR, -1)
AHEAD = (1, 2 * HOUR, 20 * HOUR)
MOMENTS = (-50 * HOUR, -20 * HOUR - 1, -20 * HOUR, -2 * HOUR, -1, 0, 1, 2 * HOUR, 2 * HOUR + 1, 60 * HOUR)

COLLECTIONS = {slug: UUID(int=number) for number, slug in enumerate(("archive", "bare", "library"), 1)}
LABELS = ("board", "pay")
DOCUMENTS = tuple(UUID(int=100 + number) for number in range(4))
# Every shape of class: no label, one, two; with and without a document's own. `bare` has none yet.
_SHAPES: tuple[tuple[str, tuple[str, ...], UUID | None], ...] = (
    ("library", (), None),
    ("library", ("board",), None),
    ("library", ("pay",), None),
    ("library", ("board", "pay"), None),
    ("library", (), DOCUMENTS[0]),
    ("library", ("board", "pay"), DOCUMENTS[1]),
    ("archive", (), None),
    ("archive", ("board",), None),
    ("archive", ("pay",), DOCUMENTS[2]),
)
CLASSES = tuple(AccessClass(id_, COLLECTIONS[slug], labels, own) for id_, (slug, labels, own) in enumerate(_SHAPES, 1))
SLUGS = {id_: slug for slug, id_ in COLLECTIONS.items()}

# Few names, so that rules meet callers; the same for every kind and issuer, so that they could be confused; and a star
# is no wildcard.
SUBJECTS = ((LOCAL_ISSUER, "ann"), (LOCAL_ISSUER, "staff"), ("https://one", "ann"), ("https://two", "*"))
PRINCIPALS = tuple(principal_key(*subject) for subject in SUBJECTS)
CLAIMED = ("ann", "staff", "*")
GROUPS = ("ann", "staff", "https://one|ann", "https://one|staff", "https://two|*")
ROLES = ("staff", "ann", "board")
LADDER_MAX = 14


@dataclass(frozen=True, slots=True)
class Span:
    """When a row was made, what it is bounded by and when it was revoked; microseconds from the base."""

    granted: int = -60 * HOUR
    begins: int = -60 * HOUR
    ends: int | None = None
    revoked: int | None = None

    def stands(self, at: int | None) -> bool:
        """Whether the row counts at a moment; None is the reader's present, for which revoked is revoked."""
        if at is None:
            return self.revoked is None and self.begins <= 0 and (self.ends is None or self.ends > 0)
        if self.granted > at or (self.revoked is not None and self.revoked <= at):
            return False
        return self.begins <= at and (self.ends is None or self.ends > at)

    def dates(self, base: datetime) -> tuple[datetime, datetime, datetime | None, datetime | None]:
        """granted_at, valid_from, valid_until, revoked_at."""

        def moment(offset: int | None) -> datetime | None:
            return None if offset is None else base + timedelta(microseconds=offset)

        granted, begins = (base + timedelta(microseconds=offset) for offset in (self.granted, self.begins))
        return granted, begins, moment(self.ends), moment(self.revoked)


ALWAYS = Span()


@dataclass(frozen=True, slots=True)
class Joined:
    """One membership; both sides by kind and name."""

    member: tuple[str, str]
    container: tuple[str, str]
    span: Span = ALWAYS


@dataclass(frozen=True, slots=True)
class On:
    """What a rule is on: of these columns, those that its kind needs."""

    kind: str
    collection: str | None = None
    label: str | None = None
    document: UUID | None = None

    @property
    def resource(self) -> str:
        """Its name as a class knows it."""
        if self.collection is None:
            return SYSTEM
        id_ = COLLECTIONS[self.collection]
        if self.document is not None:
            return document_resource(self.document)
        return collection_resource(id_) if self.label is None else label_resource(id_, self.label)

    @property
    def columns(self) -> tuple[str, UUID | None, str | None, UUID | None]:
        """resource_kind, collection_id, label, document_id."""
        return self.kind, COLLECTIONS[self.collection] if self.collection else None, self.label, self.document


@dataclass(frozen=True, slots=True)
class Granted:
    """The same rule for several actions: one row each. The subject by kind and name."""

    subject: tuple[str, str]
    actions: frozenset[Action]
    effect: Effect
    on: On
    span: Span = ALWAYS


@dataclass(frozen=True, slots=True)
class Given:
    """A policy, who is asked about, and at which moments beside now."""

    joined: tuple[Joined, ...]
    granted: tuple[Granted, ...]
    callers: tuple[Principal, ...] = ()
    moments: tuple[int, ...] = ()

    def rows(self) -> Iterator[tuple[Granted, Action]]:
        """One rule and one action at a time, as the table holds them."""
        return ((rule, action) for rule in self.granted for action in sorted(rule.actions))

    def reference(self, base: datetime) -> Policy:
        """The rows as the oracle reads them."""
        return Policy(
            tuple(_membership(one, base) for one in self.joined),
            tuple(_grant(one, action, base) for one, action in self.rows()),
            {str(id_): slug for id_, slug in SLUGS.items()},
        )


def _membership(one: Joined, base: datetime) -> MembershipRow:
    (kind, member), (container_kind, container) = one.member, one.container
    return MembershipRow(kind, member, container_kind, container, *one.span.dates(base))


def _grant(one: Granted, action: Action, base: datetime) -> GrantRow:
    kind, subject = one.subject
    return GrantRow(kind, subject, action.value, one.effect.value, one.on.resource, *one.span.dates(base))


def _mostly(usual: st.SearchStrategy[T], seldom: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """Three times in four the first, to which examples also shrink."""
    return st.integers(0, 3).flatmap(lambda number: seldom if number == 3 else usual)


_BOUNDED = st.builds(
    Span,
    granted=st.sampled_from((-60 * HOUR, -20 * HOUR, -1, 1)),
    begins=st.sampled_from((*PAST, 0, *AHEAD)),
    ends=st.none() | st.sampled_from((*PAST, 0, *AHEAD)),
    revoked=st.none() | st.sampled_from((-20 * HOUR, -1, 0, 1)),
).filter(lambda span: span.ends is None or span.ends > span.begins)
_SPANS = _mostly(st.just(ALWAYS), _BOUNDED)


def _joined(people: st.SearchStrategy[str], groups: st.SearchStrategy[str]) -> st.SearchStrategy[Joined]:
    members = st.tuples(st.just("principal"), people) | st.tuples(st.just("group"), groups)
    group = st.tuples(st.just("group"), st.sampled_from(GROUPS))
    role = st.tuples(st.just("role"), st.sampled_from(ROLES))
    nested = st.builds(Joined, members, group, _SPANS) | st.builds(Joined, role, role, _SPANS)
    return _mostly(st.builds(Joined, members, role, _SPANS), nested)


def _on() -> st.SearchStrategy[On]:
    slugs = st.sampled_from(tuple(COLLECTIONS))
    homes = {document: slug for (slug, _, document) in _SHAPES} | {DOCUMENTS[3]: "library"}
    return st.one_of(
        st.builds(On, st.just("label"), slugs, st.sampled_from(LABELS)),
        st.builds(On, st.just("collection"), slugs),
        st.sampled_from(DOCUMENTS).map(lambda document: On("document", homes[document], None, document)),
        st.just(On("system")),
    )


def granted(people: st.SearchStrategy[str]) -> st.SearchStrategy[Granted]:
    """One rule of a role or of one of `people`, on the system, a collection, a label or a document."""
    actions = tuple(Action)
    return st.builds(
        Granted,
        st.tuples(st.just("role"), st.sampled_from(ROLES)) | st.tuples(st.just("principal"), people),
        _mostly(st.just(frozenset(actions)), st.frozensets(st.sampled_from(actions), min_size=1, max_size=3)),
        _mostly(st.just(Effect.ALLOW), st.just(Effect.DENY)),
        _on(),
        _SPANS,
    )


def _wide(words: tuple[T, ...]) -> st.SearchStrategy[frozenset[T]]:
    """Some of `words`; mostly most of them."""
    return _mostly(
        st.frozensets(st.sampled_from(words), max_size=2).map(lambda left_out: frozenset(words) - left_out),
        st.frozensets(st.sampled_from(words), max_size=2),
    )


def narrowings() -> st.SearchStrategy[Narrowing]:
    """Bounds of a token, also ones that leave nothing."""
    return st.builds(
        Narrowing,
        actions=st.none() | _wide(tuple(Action)),
        collections=st.none() | _wide((*COLLECTIONS, "elsewhere")),
    )


def callers(depth: int = 2) -> st.SearchStrategy[Principal]:
    """A caller with claimed groups, perhaps narrowed, perhaps with agents acting for it, one behind the other."""
    return st.builds(
        _principal,
        st.sampled_from(SUBJECTS),
        st.frozensets(st.sampled_from(CLAIMED), max_size=2),
        _mostly(st.none(), callers(depth - 1) if depth else st.none()),
        _mostly(st.none(), narrowings()),
    )


def _principal(
    who: tuple[str, str], groups: frozenset[str], actor: Principal | None, narrowing: Narrowing | None
) -> Principal:
    return Principal(*who, groups, actor, narrowing)


def _ladder(rungs: int) -> tuple[Joined, ...]:
    """`board` above `staff`, with so many roles between: chains have no greatest length."""
    names = ("staff", *(f"rung-{number}" for number in range(rungs)), "board")
    return tuple(Joined(("role", below), ("role", above)) for below, above in pairwise(names))


def unique(rows: list[Joined]) -> tuple[Joined, ...]:
    """Of one membership at most one row is not revoked, as an index demands."""
    standing = {(row.member, row.container): row for row in rows if row.span.revoked is None}
    return (*standing.values(), *(row for row in rows if row.span.revoked is not None))


def never_revoked(policy: Given) -> Given:
    """The same rows, said long ago and never revoked: only their bounds are left to change anything."""
    return replace(
        policy,
        joined=unique([replace(row, span=_bounds_of(row.span)) for row in policy.joined]),
        granted=tuple(replace(row, span=_bounds_of(row.span)) for row in policy.granted),
    )


def _bounds_of(span: Span) -> Span:
    return Span(begins=span.begins, ends=span.ends)


def _rows(row: st.SearchStrategy[T], count: int) -> st.SearchStrategy[list[T]]:
    """A list, rather long; examples shrink to short ones."""
    return _mostly(st.lists(row, min_size=count // 2, max_size=count), st.lists(row, max_size=count // 2))


@st.composite
def policies(draw: st.DrawFn, rows: int = 16, asked: int = 4, moments: int = 2) -> Given:
    """A policy of at most so many memberships and rules (but for the ladder), with so many callers and moments.

    Most rows speak of somebody who is asked about: a rule of nobody's proves nothing.
    """
    who = draw(st.lists(callers(), min_size=1, max_size=asked))
    parties = [party for caller in who for party in caller.parties]
    groups = [group for party in parties for group in party.group_keys] or list(GROUPS)
    people = _mostly(st.sampled_from([party.key for party in parties]), st.sampled_from(PRINCIPALS))
    joined = draw(_rows(_joined(people, _mostly(st.sampled_from(groups), st.sampled_from(GROUPS))), rows))
    rungs = draw(_mostly(st.none(), st.integers(0, LADDER_MAX)))
    return Given(
        joined=unique([*joined, *(_ladder(rungs) if rungs is not None else ())]),
        granted=tuple(draw(_rows(granted(people), rows))),
        callers=tuple(who),
        moments=tuple(draw(st.lists(st.sampled_from(MOMENTS), max_size=moments, unique=True))),
    )
