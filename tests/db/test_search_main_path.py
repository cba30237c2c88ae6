"""The main path on a real database: upload, read, publish, search, and the two-role differences."""

import pytest
from support.world import World, local

from app.errors import Denied

SHARED = "The canteen opens at half past seven. Lunch is served from noon until two in the afternoon."
CLOSED = "The board approved the purchase of the Tessaline warehouse for nine million crowns."


async def _two_roles(world: World) -> None:
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", SHARED)
    await world.add("handbook", "purchase.txt", CLOSED, labels=("confidential",))
    await world.publish("handbook")
    await world.members("staff", principals={"general"})
    await world.grant("search", "handbook", role="staff")
    await world.grant("search", "handbook", role="staff", effect="deny", label="confidential")
    await world.grant("search", "handbook", principal="restricted")


async def test_each_role_finds_what_it_may_and_only_that(world: World) -> None:
    await _two_roles(world)
    general = await world.search(local("general"), "When is lunch served in the canteen?")
    assert [fragment.text for fragment in general.fragments] == [SHARED]
    assert general.corpus_versions == ("handbook@1",)
    restricted = await world.search(local("restricted"), "Which warehouse did the board approve to purchase?")
    assert restricted.fragments[0].text == CLOSED
    hidden = await world.search(local("general"), "Which warehouse did the board approve to purchase?")
    assert CLOSED not in [fragment.text for fragment in hidden.fragments]


async def test_made_up_words_are_empty(world: World) -> None:
    await _two_roles(world)
    assert (await world.search(local("general"), "zxqv wplk brrgh")).fragments == ()


@pytest.mark.parametrize("collection", ["handbook", "nowhere", None])
async def test_a_stranger_is_denied_whatever_it_names(world: World, collection: str | None) -> None:
    await _two_roles(world)
    with pytest.raises(Denied):
        await world.search(local("stranger"), "lunch", collection)


async def test_revocation_is_seen_by_the_next_call(world: World) -> None:
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", SHARED)
    await world.publish("handbook")
    grant = await world.grant("search", "handbook", principal="general")
    assert (await world.search(local("general"), "lunch in the canteen")).fragments
    await world.revoke(grant.id)
    with pytest.raises(Denied):
        await world.search(local("general"), "lunch in the canteen")
