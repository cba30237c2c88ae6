"""Roles, grants and tokens."""

from uuid import UUID

import msgspec
from litestar import Controller, delete, get, post, put

from app.authz import grants, roles
from app.authz.grants import GrantCard, NewGrant
from app.authz.membership import Members
from app.authz.roles import RoleCard
from app.domain.calls import Call
from app.domain.principal import Principal
from app.entrypoints.http.caller import named
from app.entrypoints.http.fields import Label, Line, Moment
from app.entrypoints.http.paging import LIMIT_DEFAULT, NO_UUID, Page, after, limit_of, page
from app.entrypoints.services import Services
from app.identity import custody
from app.identity.tokens import IssuedToken, NewToken, TokenCard


class RoleBody(msgspec.Struct, forbid_unknown_fields=True):
    """A role to be made."""

    name: str


class MembersBody(msgspec.Struct, forbid_unknown_fields=True):
    """All members of a role; whoever is not named leaves it."""

    principals: list[str] = []
    groups: list[str] = []
    roles: list[str] = []


class GrantBody(msgspec.Struct, forbid_unknown_fields=True):
    """A rule to be made: exactly one of `role` and `principal`, at most one of `label` and `document`."""

    action: str
    collection: str
    effect: str = "allow"
    role: Line | None = None
    principal: Line | None = None
    label: Label | None = None
    document: UUID | None = None
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    reason: Line = ""


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    """A token to be made; for another's `subject` an administrator is needed."""

    name: Line
    subject: str | None = None
    actor: str | None = None
    expires_at: Moment | None = None
    actions: list[str] | None = None
    collections: list[str] | None = None


class RoleController(Controller):
    """Roles and who is in them."""

    path = "/api/v1/roles"

    @get()
    async def listed(
        self, services: Services, caller: Principal, call: Call, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[RoleCard]:
        """Every role, for who may make rules."""
        start = after(cursor, str, "")
        found = await services.calls.read(
            call,
            lambda snapshot: roles.listed(snapshot, services.authority, caller, after=start, limit=limit_of(limit) + 1),
        )
        return page(found, limit, lambda card: card.name)

    @post()
    async def create(self, services: Services, caller: Principal, call: Call, data: RoleBody) -> RoleCard:
        """Make an empty role."""
        return await services.calls.change(
            call, lambda transaction: roles.create(transaction, services.authority, caller, data.name)
        )

    @get("/{name:str}/members")
    async def members(self, services: Services, caller: Principal, call: Call, name: str) -> MembersBody:
        """Who is in a role."""
        found = await services.calls.read(
            call, lambda snapshot: roles.members(snapshot, services.authority, caller, name)
        )
        return _members(found)

    @put("/{name:str}/members")
    async def set_members(
        self, services: Services, caller: Principal, call: Call, name: str, data: MembersBody
    ) -> MembersBody:
        """Make these the members of a role."""
        wanted = Members(frozenset(data.principals), frozenset(data.groups), frozenset(data.roles))
        done = await services.calls.change(
            call, lambda transaction: roles.set_members(transaction, services.authority, caller, name, wanted)
        )
        return _members(done)


def _members(found: Members) -> MembersBody:
    return MembersBody(sorted(found.principals), sorted(found.groups), sorted(found.roles))


class GrantController(Controller):
    """Rules."""

    path = "/api/v1/grants"

    @get()
    async def listed(
        self, services: Services, caller: Principal, call: Call, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[GrantCard]:
        """The rules on the collections that the caller manages, revoked ones among them."""
        start = after(cursor, UUID, NO_UUID)
        found = await services.calls.read(
            call,
            lambda snapshot: grants.listed(
                snapshot, services.authority, caller, after=start, limit=limit_of(limit) + 1
            ),
        )
        return page(found, limit, lambda card: card.id)

    @post()
    async def grant(self, services: Services, caller: Principal, call: Call, data: GrantBody) -> GrantCard:
        """Make a rule on a collection that the caller manages."""
        call.collection = named(data.collection)
        wanted = NewGrant(**msgspec.structs.asdict(data))
        return await services.calls.change(
            call,
            lambda transaction: grants.grant(transaction, services.authority, services.printer, caller, wanted),
        )

    @delete("/{grant_id:uuid}", status_code=200)
    async def revoke(self, services: Services, caller: Principal, call: Call, grant_id: UUID) -> GrantCard:
        """End a rule now. It stays readable, with who ended it and when."""
        return await services.calls.change(
            call, lambda transaction: grants.revoke(transaction, services.authority, caller, grant_id)
        )


class TokenController(Controller):
    """Personal access tokens."""

    path = "/api/v1/tokens"

    @get()
    async def listed(
        self, services: Services, caller: Principal, call: Call, limit: int = LIMIT_DEFAULT, cursor: str | None = None
    ) -> Page[TokenCard]:
        """The caller's own tokens, or for an administrator everybody's, without their secrets."""
        start = after(cursor, str, "")
        found = await services.calls.read(
            call,
            lambda snapshot: custody.listed(
                snapshot, services.authority, caller, None, after=start, limit=limit_of(limit) + 1
            ),
        )
        return page(found, limit, lambda card: card.id)

    @post()
    async def issue(self, services: Services, caller: Principal, call: Call, data: TokenBody) -> IssuedToken:
        """Make a token; it is shown this once."""
        bounds = custody.bounds(data.actions, data.collections, data.expires_at)
        wanted = NewToken(data.subject or caller.key, data.name, data.actor, bounds)
        return await services.calls.change(
            call, lambda transaction: custody.issue(transaction, services.authority, caller, wanted)
        )

    @delete("/{token_id:str}", status_code=204)
    async def revoke(self, services: Services, caller: Principal, call: Call, token_id: str) -> None:
        """Revoke one of the caller's own tokens; an administrator, anybody's."""
        await services.calls.change(
            call, lambda transaction: custody.revoke(transaction, services.authority, caller, token_id)
        )
