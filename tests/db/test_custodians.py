"""Who runs a collection, and who confirms purges: two people, always."""

import psycopg
import pytest
from support.postgres import RunDatabase
from support.world import OWNER, World, local

from app.domain.access import Action
from app.errors import Denied, InvalidRequest, NotFound
from app.ingest import collections
from app.ingest.collections import Custodians, NewCollection


async def _scope(world: World, who: str, action: Action) -> bool:
    scope = await world.services.database.read(
        lambda snapshot: world.services.authority.compile(snapshot, local(who), action)
    )
    return "handbook" in scope.collections


async def _appoint(world: World, by: str, owner: str, confirmer: str | None) -> None:
    services = world.services
    await world.change(
        lambda transaction: collections.appoint(
            transaction, services.authority, local(by), "handbook", Custodians(owner, confirmer), services.owner_actions
        )
    )


async def test_handing_over_takes_from_the_old_and_gives_to_the_new(world: World) -> None:
    await world.collection("handbook")
    await _appoint(world, "owner", "olga", "peter")
    for action in world.services.owner_actions:
        assert await _scope(world, "olga", action)
        assert not await _scope(world, "owner", action)
    assert await _scope(world, "peter", Action.PURGE)
    assert not await _scope(world, "peter", Action.MANAGE)
    await _appoint(world, "olga", "olga", None)
    assert not await _scope(world, "peter", Action.PURGE)


@pytest.mark.parametrize(("by", "error"), [("stranger", NotFound), ("reader", Denied)])
async def test_only_who_manages_may_hand_over(world: World, by: str, error: type[Exception]) -> None:
    await world.collection("handbook")
    await world.grant("search", "handbook", principal="reader")
    with pytest.raises(error):
        await _appoint(world, by, by, None)


async def test_the_owner_confirms_nothing(world: World, postgres_database: RunDatabase) -> None:
    await world.collection("handbook")
    with pytest.raises(InvalidRequest):
        await _appoint(world, "owner", "olga", "olga")
    services = world.services
    with pytest.raises(InvalidRequest):
        await world.change(
            lambda transaction: collections.create(
                transaction, services.authority, OWNER, NewCollection("x", "X", "owner"), services.owner_actions
            )
        )
    with postgres_database.service() as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute("UPDATE collections SET purge_confirmer = owner")
