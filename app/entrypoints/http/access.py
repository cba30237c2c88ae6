"""Why somebody may or may not, and what somebody could see: for owners and auditors."""

from datetime import datetime
from uuid import UUID

import msgspec
from litestar import Controller, get, post

from app.authz import explain, preview
from app.authz.explain import Explanation, Target
from app.authz.grants import NewGrant
from app.authz.preview import Change, Preview, Searcher
from app.authz.rules import Subject
from app.domain.access import SLUG, Action
from app.domain.calls import Call
from app.domain.principal import Principal, is_principal_key
from app.entrypoints.http.caller import named
from app.entrypoints.http.ruling import GrantBody
from app.entrypoints.services import Services
from app.errors import InvalidRequest


class Proposal(msgspec.Struct, forbid_unknown_fields=True):
    """Whose view is asked for, and the rule that is thought of."""

    grant: GrantBody
    principal: str | None = None
    role: str | None = None
    groups: list[str] = []


class Searchers(msgspec.Struct):
    """Everybody who may."""

    items: list[Searcher]
    next_cursor: None = None


class AccessController(Controller):
    """Explanations and previews."""

    path = "/api/v1/access"

    @get("/explain")
    async def explain(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        action: str,
        principal: str | None = None,
        role: str | None = None,
        groups: list[str] | None = None,
        collection: str | None = None,
        label: str | None = None,
        document: UUID | None = None,
        at: datetime | None = None,
    ) -> Explanation:
        """The verdict, every rule that matched, and how the subject came by it."""
        call.collection = named(collection)
        subject = subject_of(principal, role, groups)
        target = Target(collection, label, document)
        wanted = action_of(action)
        return await services.calls.read(
            call,
            lambda snapshot: explain.explain(snapshot, services.authority, caller, subject, wanted, target, moment(at)),
        )

    @get("/preview")
    async def preview(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        principal: str | None = None,
        role: str | None = None,
        groups: list[str] | None = None,
        at: datetime | None = None,
    ) -> Preview:
        """What a role or principal could search, now or then, within what the caller manages or audits."""
        subject = subject_of(principal, role, groups)
        return await services.calls.read(
            call,
            lambda snapshot: preview.preview(
                snapshot, services.authority, services.printer, caller, subject, moment(at)
            ),
        )

    @post("/preview", status_code=200)
    async def proposed(self, services: Services, caller: Principal, call: Call, data: Proposal) -> Change:
        """What a proposed rule would add and take away. Nothing is changed."""
        call.collection = named(data.grant.collection)
        subject = subject_of(data.principal, data.role, data.groups)
        wanted = NewGrant(**msgspec.structs.asdict(data.grant))
        return await services.calls.rehearse(
            call,
            lambda transaction: preview.proposed(
                transaction, services.authority, services.printer, caller, subject, wanted
            ),
        )

    @get("/who")
    async def who(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        action: str = Action.SEARCH.value,
        collection: str | None = None,
        label: str | None = None,
        document: UUID | None = None,
        at: datetime | None = None,
    ) -> Searchers:
        """Every principal, group and role that may do this."""
        call.collection = named(collection)
        target, wanted = Target(collection, label, document), action_of(action)
        found = await services.calls.read(
            call,
            lambda snapshot: preview.who(snapshot, services.authority, caller, wanted, target, moment(at)),
        )
        return Searchers(found)


def subject_of(principal: str | None, role: str | None, groups: list[str] | None) -> Subject:
    """Whom a question is about. Raises `InvalidRequest`."""
    if (principal is None) == (role is None):
        raise InvalidRequest("principal", "give a principal or a role", allowed="exactly one of the two")
    if role is not None:
        if SLUG.fullmatch(role) is None:
            raise InvalidRequest("role", "not a role name", allowed="1..63 of a-z, 0-9 and -")
        return Subject("role", role)
    for field, names in (("principal", [principal]), ("groups", groups or [])):
        if not all(is_principal_key(str(name)) for name in names):
            raise InvalidRequest(field, "not a name", allowed="a local name, or issuer|name")
    return Subject("principal", str(principal), tuple(sorted(groups or ())))


def action_of(action: str) -> Action:
    """The action of this name. Raises `InvalidRequest`."""
    if action not in tuple(Action):
        raise InvalidRequest("action", "not an action", allowed=", ".join(Action))
    return Action(action)


def moment(at: datetime | None) -> datetime | None:
    """A moment with its time zone. Raises `InvalidRequest`."""
    if at is not None and at.tzinfo is None:
        raise InvalidRequest("at", "without a time zone", allowed="RFC 3339 with an offset")
    return at
