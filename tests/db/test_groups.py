"""Groups across issuers, nested, and who may change them."""

import pytest
from support.world import World, local

from app.authz import groups
from app.authz.builtin import OPERATOR
from app.authz.membership import Members
from app.domain.principal import Principal
from app.errors import Conflict, Denied, InvalidRequest

IDP = "https://idp.example"
TEXT = "The canteen opens at half past seven in the morning."


async def _set(world: World, group: str, members: Members, by: Principal = OPERATOR) -> None:
    authority = world.services.authority
    await world.change(lambda transaction: groups.set_members(transaction, authority, by, group, members), by)


async def test_a_claimed_group_reaches_a_role_through_a_local_one(world: World) -> None:
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", TEXT)
    await world.publish("handbook")
    await world.members("staff", groups={"everybody"})
    await world.grant("search", "handbook", role="staff")
    await _set(world, "everybody", Members(groups=frozenset({f"{IDP}|berlin"})))
    anna = Principal(IDP, "anna", groups=frozenset({"berlin"}))
    assert (await world.search(anna, "When does the canteen open?")).fragments
    for stranger in (
        Principal(IDP, "anna"),
        Principal("https://other.example", "anna", groups=frozenset({"berlin"})),
        Principal("local", "anna", groups=frozenset({"berlin"})),
    ):
        with pytest.raises(Denied):
            await world.search(stranger, "When does the canteen open?")
    await _set(world, "everybody", Members())
    with pytest.raises(Denied):
        await world.search(anna, "When does the canteen open?")


async def test_groups_do_not_contain_themselves_or_roles(world: World) -> None:
    await _set(world, "a", Members(groups=frozenset({"b"})))
    with pytest.raises(Conflict):
        await _set(world, "b", Members(groups=frozenset({"a"})))
    with pytest.raises(InvalidRequest):
        await _set(world, "a", Members(roles=frozenset({"auditor"})))


@pytest.mark.parametrize("subject", ["owner", "stranger"])
async def test_only_administrators_change_groups(world: World, subject: str) -> None:
    await world.collection("handbook")
    with pytest.raises(Denied):
        await _set(world, "everybody", Members(principals=frozenset({subject})), local(subject))
