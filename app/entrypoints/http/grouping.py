"""Groups and who was put into them here. Their names may hold anything, so they are no part of a path."""

import msgspec
from litestar import Controller, get, put

from app.authz import groups
from app.authz.membership import Members
from app.domain.calls import Call
from app.domain.principal import Principal
from app.entrypoints.http.fields import Line
from app.entrypoints.services import Services


class GroupBody(msgspec.Struct, forbid_unknown_fields=True):
    """All that was put into a group here; whatever is not named leaves it. What tokens claim is not changed."""

    group: Line
    principals: list[Line] = []
    groups: list[Line] = []


class GroupController(Controller):
    """Groups, for administrators."""

    path = "/api/v1/groups/members"

    @get()
    async def members(self, services: Services, caller: Principal, call: Call, group: Line) -> GroupBody:
        """Who was put into a group here."""
        found = await services.calls.read(
            call, lambda snapshot: groups.members(snapshot, services.authority, caller, group)
        )
        return GroupBody(group, sorted(found.principals), sorted(found.groups))

    @put()
    async def set_members(self, services: Services, caller: Principal, call: Call, data: GroupBody) -> GroupBody:
        """Make these the members of a group, which may be groups of other issuers."""
        wanted = Members(frozenset(data.principals), frozenset(data.groups))
        done = await services.calls.change(
            call, lambda transaction: groups.set_members(transaction, services.authority, caller, data.group, wanted)
        )
        return GroupBody(data.group, sorted(done.principals), sorted(done.groups))
