"""Roles within roles: what a member comes by, what is refused, and that every row stays."""

import asyncio
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from support.postgres import RunDatabase
from support.waiting import until_async
from support.world import OWNER, World, local

from app.authz import groups, roles
from app.authz.builtin import OPERATOR
from app.authz.membership import Members
from app.db.session import Transaction
from app.domain.access import GRANTABLE
from app.domain.principal import Principal
from app.errors import Conflict, Denied, InvalidRequest, NotFound, StacksError

IDP, OTHER = "https://idp.example", "https://other.example"
BLOCKED = """
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
"""
QUERY = "When is lunch served?"
ANNA = local("anna")
OLAF = local("olaf")


@pytest.fixture
async def shelf(world: World) -> World:
    """A world in which `owner` has `handbook`, and `olaf` has `ledger`."""
    await world.members("collection-creator", principals={OWNER.key, OLAF.key})
    for slug, by in (("handbook", OWNER), ("ledger", OLAF)):
        await world.collection(slug, by=by)
        await world.add(slug, "canteen.txt", f"Lunch is served at noon, says the {slug}.", by=by)
        await world.publish(slug, by=by)
    return world


async def _may(world: World, who: Principal, collection: str = "handbook") -> bool:
    try:
        await world.search(who, QUERY, collection)
    except Denied:
        return False
    return True


async def _set(world: World, by: Principal, role: str, **members: Iterable[str]) -> None:
    wanted = Members(**{kind: frozenset(names) for kind, names in members.items()})
    await world.change(
        lambda transaction: roles.set_members(transaction, world.services.authority, by, role, wanted), by
    )


async def _create(world: World, by: Principal, role: str) -> None:
    await world.change(lambda transaction: roles.create(transaction, world.services.authority, by, role), by)


async def _ended(work: Awaitable[object]) -> type[StacksError] | None:
    try:
        await work
    except StacksError as error:
        return type(error)
    return None


async def test_a_right_comes_down_any_number_of_roles_and_goes_with_any_of_them(shelf: World) -> None:
    chain = [f"step-{number}" for number in range(6)]
    await shelf.members(chain[0], principals={"anna"})
    for below, above in pairwise(chain):
        await shelf.members(above, roles={below})
    await shelf.grant("search", "handbook", role=chain[-1])
    assert await _may(shelf, ANNA)
    for number, (below, above) in enumerate(pairwise(chain)):
        await shelf.members(above, roles=set())
        assert not await _may(shelf, ANNA), number
        await shelf.members(above, roles={below})
        assert await _may(shelf, ANNA), number
    await shelf.grant("search", "handbook", role=chain[2], effect="deny")
    assert not await _may(shelf, ANNA)


async def test_a_right_does_not_come_down_the_other_way(shelf: World) -> None:
    await shelf.members("below", principals={"bert"})
    await shelf.members("above", principals={"anna"}, roles={"below"})
    await shelf.grant("search", "handbook", role="below")
    assert (await _may(shelf, ANNA), await _may(shelf, local("bert"))) == (False, True)


async def test_a_role_is_not_within_itself(world: World) -> None:
    for length in (1, 2, 5):
        names = [f"ring-{length}-{number}" for number in range(length)]
        await world.members(names[0])
        for below, above in pairwise(names):
            await world.members(above, roles={below})
        with pytest.raises(Conflict):
            await world.members(names[0], roles={names[-1]})


@pytest.mark.parametrize("kind", ["role", "group"])
async def test_two_halves_of_a_ring_at_once_make_none(world: World, postgres_database: RunDatabase, kind: str) -> None:
    """The second begins while the first is done and not yet committed, so it cannot see it."""
    for name in ("left", "right"):
        await world.members(name)
    other: list[asyncio.Task[type[StacksError] | None]] = []

    async def first(transaction: Transaction) -> None:
        await _put(transaction, world, kind, "left", "right")
        second = world.change(lambda inner: _put(inner, world, kind, "right", "left"), OPERATOR)
        other.append(asyncio.ensure_future(_ended(second)))
        await until_async(_waits_or_ended, "the second to wait for the first")

    async def _waits_or_ended() -> bool:
        with postgres_database.superuser() as connection:
            waiting = connection.execute(BLOCKED).fetchone()
        return waiting is not None or other[0].done()

    await world.change(first, OPERATOR)
    assert await other[0] is Conflict


async def _put(transaction: Transaction, world: World, kind: str, container: str, member: str) -> None:
    members = Members(**{f"{kind}s": frozenset({member})})
    of = roles if kind == "role" else groups
    await of.set_members(transaction, world.services.authority, OPERATOR, container, members)


async def test_names_of_issuers_are_never_taken_for_one_another(shelf: World) -> None:
    await shelf.members("readers", groups={f"{IDP}|staff"}, principals={f"{IDP}|carl"})
    await shelf.grant("search", "handbook", role="readers")
    staff = frozenset({"staff"})
    for who, may in (
        (Principal(IDP, "x", groups=staff), True),
        (Principal(IDP, "carl"), True),
        (Principal(OTHER, "x", groups=staff), False),
        (Principal(OTHER, "carl"), False),
        (Principal("local", "x", groups=staff), False),
        (local("carl"), False),
        (Principal(IDP, "staff"), False),  # a person is no group of that name
        (Principal(IDP, "readers", groups=frozenset({"readers", "role:readers"})), False),
        (Principal(IDP, "x", groups=frozenset({"carl"})), False),
        (Principal(f"{IDP}|staff", "x"), False),
    ):
        assert await _may(shelf, who) is may, who


NO_WILDCARDS: list[dict[str, str]] = [
    {"principal": "*"},
    {"role": "*"},
    {"principal": "owner", "label": "*"},
    {"principal": "owner", "label": ""},
    {"principal": ""},
    {"principal": "|"},
    {"principal": f"{IDP}|"},
]


async def test_a_star_and_an_empty_name_are_no_wildcards(shelf: World) -> None:
    await shelf.members("readers", principals={"anna"})
    for given in NO_WILDCARDS:
        rest: dict[str, Any] = dict(given)
        assert await _ended(shelf.grant("search", "handbook", **rest)) is InvalidRequest, given
        for who in (ANNA, local("somebody"), Principal(IDP, "x")):
            assert not await _may(shelf, who), given
    assert await _ended(shelf.grant("search", "*", principal="anna")) is NotFound
    await shelf.grant("search", "handbook", principal="role:readers")  # a person of an odd name
    assert not await _may(shelf, ANNA)


async def test_a_star_of_an_issuers_own_is_a_name(shelf: World) -> None:
    await shelf.grant("search", "handbook", principal=f"{IDP}|*")
    assert await _may(shelf, Principal(IDP, "*"))
    assert not await _may(shelf, Principal(IDP, "x"))


async def test_who_made_a_role_puts_people_in_while_it_reaches_nothing_of_others(shelf: World) -> None:
    await _create(shelf, OWNER, "mine")
    await shelf.grant("search", "handbook", role="mine")
    await _set(shelf, OWNER, "mine", principals={"anna"})
    assert await _ended(_set(shelf, OLAF, "mine", principals={"olaf"})) is Denied
    for valid_from in (None, datetime.now(UTC) + timedelta(days=30)):  # one to come counts already
        theirs = await shelf.grant("search", "ledger", by=OLAF, role="mine", valid_from=valid_from)
        assert await _ended(_set(shelf, OWNER, "mine", principals={"anna", "bert"})) is Denied
        await shelf.revoke(theirs.id, by=OLAF)
        await _set(shelf, OWNER, "mine", principals={"anna"})


async def test_a_role_is_no_way_into_the_roles_above_it(shelf: World) -> None:
    await _create(shelf, OWNER, "mine")
    await shelf.members("theirs", roles={"mine"})
    await shelf.grant("search", "ledger", by=OLAF, role="theirs")
    assert await _ended(_set(shelf, OWNER, "mine", principals={"owner"})) is Denied
    assert await _ended(_set(shelf, OWNER, "theirs", principals={"owner"})) is Denied
    assert await _ended(_set(shelf, OWNER, "administrator", roles={"mine"})) is Denied
    assert not await _may(shelf, OWNER, "ledger")


async def test_an_owner_makes_rules_on_its_own_collection_alone(shelf: World) -> None:
    for action in GRANTABLE:
        made = await shelf.grant(action, "handbook", principal="anna", reason="a visit")
        assert (made.granted_by, made.reason, made.action, made.revoked_at) == (OWNER.key, "a visit", action, None)
        assert await _ended(shelf.grant(action, "ledger", principal="anna")) is NotFound
    await shelf.grant("search", "ledger", by=OLAF, principal="owner")
    for action in GRANTABLE:
        assert await _ended(shelf.grant(action, "ledger", principal="anna")) is Denied
        theirs = await shelf.grant(action, "ledger", by=OLAF, principal="anna")
        assert await _ended(shelf.revoke(theirs.id)) is NotFound


async def test_bounds_in_time_hold_to_both_sides(shelf: World) -> None:
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    for begins, ends, may in (
        (now - hour, now + hour, True),
        (now + hour, None, False),
        (now - hour, None, True),
        (None, now + hour, True),
    ):
        made = await shelf.grant("search", "handbook", principal="anna", valid_from=begins, valid_until=ends)
        assert await _may(shelf, ANNA) is may, (begins, ends)
        await shelf.revoke(made.id)
    for begins, ends in ((None, now), (now + hour, now + hour), (now + hour, now)):
        assert (
            await _ended(shelf.grant("search", "handbook", principal="anna", valid_from=begins, valid_until=ends))
            is InvalidRequest
        )


async def test_a_rule_that_ended_stays_with_who_ended_it(world: World, postgres_database: RunDatabase) -> None:
    await world.collection("handbook")
    made = await world.grant("search", "handbook", principal="anna", reason="a visit")
    await world.revoke(made.id)
    assert await _ended(world.revoke(made.id)) is NotFound, "it ends once"
    with postgres_database.superuser() as connection:
        row = connection.execute(
            "SELECT reason, granted_by, revoked_by, revoked_at >= granted_at FROM grants WHERE id = %s", [made.id]
        ).fetchone()
    assert row == ("a visit", "owner", "owner", True)


async def test_memberships_that_ended_stay_and_a_return_is_another_row(
    world: World, postgres_database: RunDatabase
) -> None:
    for members in ({"anna"}, set(), {"anna"}):
        await world.members("guests", principals=members)
    with postgres_database.superuser() as connection:
        rows = connection.execute("""
            SELECT granted_by, revoked_by FROM memberships WHERE container = 'guests' ORDER BY granted_at
        """).fetchall()
    assert rows == [(OPERATOR.key, OPERATOR.key), (OPERATOR.key, None)]
