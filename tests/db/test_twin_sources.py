"""A source id that somebody gave who could not see that it was taken."""

from support.world import OWNER, World, local


async def test_the_owner_goes_on_with_the_first_of_two(world: World) -> None:
    await world.collection("handbook")
    first = await world.add("handbook", "pay.txt", "Pay band seven begins at five thousand.", labels=("closed",))
    await world.grant("ingest", "handbook", principal="clerk")
    await world.grant("ingest", "handbook", principal="clerk", effect="deny", label="closed")
    shadow = await world.upload("handbook", "pay.txt", "Pay day is the last Friday.", by=local("clerk"))
    assert shadow.document_id != first and not shadow.dedup_hit
    again = await world.upload("handbook", "pay.txt", "Pay band seven begins at six thousand.", by=OWNER)
    assert again.document_id == first
