"""Scenario files: given rules, what must hold and what must not. Checked on the real engine, on top of the rules in
force, in a transaction that is taken back.
"""

import tomllib
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

import msgspec
from sqlalchemy import text

from app.authz.casbin_policy import permits
from app.authz.check import require_system
from app.authz.compile import Authority
from app.authz.rules import Subject, load
from app.db.session import Transaction
from app.domain.access import (
    GRANTABLE,
    SYSTEM,
    AccessClass,
    Action,
    collection_resource,
    document_resource,
    label_resource,
    within,
)
from app.domain.principal import Narrowing, Principal, is_principal_key
from app.errors import InvalidRequest


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class GivenCollection(_Strict):
    """A collection that the scenario speaks of; made for the scenario where it does not exist."""

    slug: str
    owner: str = "scenario-owner"


class GivenDocument(_Strict):
    """A document that the scenario speaks of by `name`; with rules of its own if a grant names it."""

    name: str
    collection: str
    labels: list[str] = []


class GivenMembers(_Strict):
    """Members of a role, or of a group."""

    role: str | None = None
    group: str | None = None
    principals: list[str] = []
    groups: list[str] = []
    roles: list[str] = []


class GivenGrant(_Strict):
    """A rule, as `POST /grants` takes it; `document` is a given document's name."""

    action: str
    collection: str
    effect: str = "allow"
    role: str | None = None
    principal: str | None = None
    label: str | None = None
    document: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None


class Claim(_Strict):
    """`principal` (with groups, an agent acting for it, token bounds) may do `action` on a collection or document."""

    principal: str
    action: str
    collection: str | None = None
    label: str | None = None
    document: str | None = None
    groups: list[str] = []
    actor: str | None = None
    token_actions: list[str] | None = None
    token_collections: list[str] | None = None
    at: datetime | None = None

    def __str__(self) -> str:
        on = self.document or (f"{self.collection}#{self.label}" if self.label else self.collection)
        acting = f" through {self.actor}" if self.actor else ""
        return f"{self.principal}{acting} may {self.action} {on}"


class Given(_Strict):
    """What is added to the rules in force."""

    collections: list[GivenCollection] = []
    documents: list[GivenDocument] = []
    members: list[GivenMembers] = []
    grants: list[GivenGrant] = []


class Scenario(_Strict):
    """One scenario."""

    name: str
    given: Given = msgspec.field(default_factory=Given)
    must_hold: list[Claim] = []
    must_not_hold: list[Claim] = []


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim of a scenario, and whether the engine agrees."""

    scenario: str
    claim: str
    expected: bool
    found: bool

    @property
    def passed(self) -> bool:
        """Whether expectation and engine agree."""
        return self.expected == self.found


def parse(source: str) -> list[Scenario]:
    """The scenarios of one file (`[[scenarios]]`). Raises `InvalidRequest` saying where it is wrong."""
    try:
        raw = tomllib.loads(source)
        found = msgspec.convert(raw.get("scenarios", []), list[Scenario])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidRequest("scenarios", str(error), allowed="the form in policies/scenarios") from error
    if not found or not all(one.must_hold or one.must_not_hold for one in found):
        raise InvalidRequest("scenarios", "nothing is claimed", allowed="must_hold or must_not_hold in each")
    for claim in (claim for one in found for claim in (*one.must_hold, *one.must_not_hold)):
        _check(claim)
    return found


def _check(claim: Claim) -> None:
    if claim.action not in GRANTABLE:
        raise InvalidRequest("action", "not an action", allowed=", ".join(GRANTABLE))
    if (claim.collection is None) == (claim.document is None):
        raise InvalidRequest("collection", f"in {claim}", allowed="exactly one of collection and document")
    if not all(is_principal_key(name) for name in (claim.principal, claim.actor or "x", *claim.groups)):
        raise InvalidRequest("principal", f"in {claim}", allowed="local names, or issuer|name")


_COLLECTION = text("""
    INSERT INTO collections (slug, title, owner) VALUES (:slug, :slug, :owner) ON CONFLICT (slug) DO NOTHING
""")
_ID = text("SELECT id FROM collections WHERE slug = :slug")
_CLASS = text("""
    INSERT INTO access_classes (collection_id, labels, document_id)
    VALUES (:collection, CAST(:labels AS text[]), :document) ON CONFLICT DO NOTHING
""")
_MEMBER = text("""
    INSERT INTO memberships (member_kind, member, container_kind, container, granted_by)
    VALUES (:kind, :member, :container_kind, :container, 'scenario') ON CONFLICT DO NOTHING
""")
_GRANT = text("""
    INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, collection_id, label, document_id,
                        valid_from, valid_until, granted_by, granted_at)
    VALUES (:subject_kind, :subject, :action, :effect, :resource_kind, :collection, :label, :document,
            coalesce(CAST(:valid_from AS timestamptz), now()), :valid_until, 'scenario',
            least(now(), coalesce(CAST(:valid_from AS timestamptz), now())))
""")


async def check(transaction: Transaction, authority: Authority, by: Principal, scenario: Scenario) -> list[Verdict]:
    """Ask the engine about every claim of a scenario. Only for a transaction that is taken back (a rehearsal).

    Raises `InvalidRequest` for names that the scenario does not give, `Denied` to who does not manage the system:
    a claim about a collection is an answer about its rules.
    """
    await require_system(authority, transaction, by, Action.MANAGE)
    stage = _Stage(transaction, scenario.given)
    await stage.set()
    claims = [(claim, True) for claim in scenario.must_hold] + [(claim, False) for claim in scenario.must_not_hold]
    return [Verdict(scenario.name, str(claim), expected, await stage.holds(claim)) for claim, expected in claims]


class _Stage:
    """The given rows, put on top of what is there."""

    def __init__(self, transaction: Transaction, given: Given) -> None:
        self._run = transaction.connection.execute
        self._transaction = transaction
        self._given = given
        apart = {grant.document for grant in given.grants if grant.document is not None}
        self._documents = {one.name: (one, uuid4() if one.name in apart else None) for one in given.documents}

    async def set(self) -> None:
        for one in self._given.collections:
            await self._run(_COLLECTION, {"slug": one.slug, "owner": one.owner})
        for document, own in self._documents.values():
            collection = await self._collection(document.collection)
            await self._run(_CLASS, {"collection": collection, "labels": sorted(set(document.labels)), "document": own})
        for members in self._given.members:
            await self._join(members)
        for grant in self._given.grants:
            await self._run(_GRANT, await self._grant(grant))

    async def _collection(self, slug: str) -> UUID:
        found = (await self._run(_ID, {"slug": slug})).scalar_one_or_none()
        if found is None:
            raise InvalidRequest("collection", "not given", allowed="a given collection, or one that exists")
        return UUID(str(found))

    async def _join(self, members: GivenMembers) -> None:
        if (members.role is None) == (members.group is None):
            raise InvalidRequest("members", "of what?", allowed="exactly one of role and group")
        container = {"container_kind": "role" if members.role else "group", "container": members.role or members.group}
        kinds = (("principal", members.principals), ("group", members.groups), ("role", members.roles))
        for kind, names in kinds:
            for name in names:
                await self._run(_MEMBER, {"kind": kind, "member": name, **container})

    async def _grant(self, grant: GivenGrant) -> dict[str, object]:
        document = self._document(grant.document)[1] if grant.document is not None else None
        return {
            "subject_kind": "role" if grant.role else "principal",
            "subject": grant.role or grant.principal,
            "action": grant.action,
            "effect": grant.effect,
            "resource_kind": "document" if document else "label" if grant.label else "collection",
            "collection": await self._collection(grant.collection),
            "label": grant.label,
            "document": document,
            "valid_from": grant.valid_from,
            "valid_until": grant.valid_until,
        }

    def _document(self, name: str) -> tuple[GivenDocument, UUID | None]:
        if name not in self._documents:
            raise InvalidRequest("document", "not given", allowed=", ".join(self._documents) or "none are given")
        return self._documents[name]

    async def holds(self, claim: Claim) -> bool:
        slug, resources = await self._resources(claim)
        action = Action(claim.action)
        bounds = Narrowing(
            None if claim.token_actions is None else frozenset(map(Action, claim.token_actions)),
            None if claim.token_collections is None else frozenset(claim.token_collections),
        )
        parties = [Subject("principal", claim.principal, tuple(sorted(claim.groups)), bounds)]
        parties += [Subject("principal", claim.actor)] if claim.actor else []
        loaded = [await load(self._transaction, party, action, at=claim.at) for party in parties]
        return all(within(one.rules.bounds, action, slug) and permits(one.rules, action, resources) for one in loaded)

    async def _resources(self, claim: Claim) -> tuple[str, tuple[str, ...]]:
        if claim.document is not None:
            document, own = self._document(claim.document)
            collection = await self._collection(document.collection)
            wanted = AccessClass(0, collection, tuple(document.labels))
            return document.collection, (*wanted.resources, *([document_resource(own)] if own else []))
        slug = str(claim.collection)
        collection = await self._collection(slug)
        names = [SYSTEM, collection_resource(collection)]
        return slug, tuple(names + ([label_resource(collection, claim.label)] if claim.label else []))
