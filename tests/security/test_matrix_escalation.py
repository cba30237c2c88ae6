"""A right over a part is no way to a right over the whole."""

import pytest
from support.world import World, local

from app.errors import InvalidRequest, NotFound


@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize("action", ["manage", "audit"])
async def test_a_collection_is_managed_and_audited_as_a_whole(world: World, action: str, effect: str) -> None:
    """Whoever managed one label could make rules on the rest; whoever audited one would read of the others."""
    await world.collection("shelf")
    document = await world.add("shelf", "a.txt", "Of the tides.", labels=("pay",))

    for part in ({"label": "pay"}, {"document": document}):
        with pytest.raises(InvalidRequest, match="whole collection"):
            await world.grant(action, "shelf", principal="mallory", effect=effect, **part)
    with pytest.raises(NotFound):
        await world.grant("search", "shelf", by=local("mallory"), principal="mallory")
