"""Every scenario file that ships, on the real engine."""

from pathlib import Path

import pytest
from support.world import World

from app.authz import scenarios
from app.authz.builtin import OPERATOR
from app.authz.scenarios import Scenario, Verdict
from app.errors import InvalidRequest

FOLDER = Path(__file__).parents[2] / "policies" / "scenarios"
SHIPPED = [one for file in sorted(FOLDER.glob("*.toml")) for one in scenarios.parse(file.read_text())]


async def _checked(world: World, scenario: Scenario) -> list[Verdict]:
    services = world.services
    return await services.database.rehearse(
        lambda transaction: scenarios.check(transaction, services.authority, OPERATOR, scenario)
    )


@pytest.mark.parametrize("scenario", SHIPPED, ids=lambda one: one.name)
async def test_shipped_scenarios_hold(world: World, scenario: Scenario) -> None:
    verdicts = await _checked(world, scenario)
    assert [verdict for verdict in verdicts if not verdict.passed] == []


@pytest.mark.parametrize("side", ["must_hold", "must_not_hold"])
async def test_a_wrong_claim_is_found_out(world: World, side: str) -> None:
    right = "must_not_hold" if side == "must_hold" else "must_hold"
    scenario = scenarios.parse(f"""
        [[scenarios]]
        name = "x"
        given.collections = [{{ slug = "a" }}, {{ slug = "b" }}]
        given.grants = [{{ principal = "anna", action = "search", collection = "a" }}]
        {side} = [{{ principal = "anna", action = "search", collection = "{"b" if side == "must_hold" else "a"}" }}]
        {right} = [{{ principal = "anna", action = "search", collection = "{"b" if right != "must_hold" else "a"}" }}]
    """)[0]
    assert [verdict.passed for verdict in await _checked(world, scenario)] == (
        [False, True] if side == "must_hold" else [True, False]
    )


async def test_a_scenario_stands_on_the_rules_in_force_and_leaves_none(world: World) -> None:
    await world.collection("handbook")
    await world.grant("search", "handbook", principal="carl")
    claim = '{ principal = "carl", action = "search", collection = "handbook" }'
    deny = '{ principal = "carl", action = "search", collection = "handbook", effect = "deny" }'
    allowed = scenarios.parse(f'[[scenarios]]\nname = "x"\nmust_hold = [{claim}]')[0]
    denied = scenarios.parse(f'[[scenarios]]\nname = "x"\ngiven.grants = [{deny}]\nmust_not_hold = [{claim}]')[0]
    for scenario in (allowed, denied, allowed):
        assert all(verdict.passed for verdict in await _checked(world, scenario))


@pytest.mark.parametrize(
    "source",
    [
        "nonsense",
        "",
        '[[scenarios]]\nname = "claims nothing"',
        '[[scenarios]]\nname = "x"\nmust_hold = [{ principal = "a", action = "fly", collection = "c" }]',
        '[[scenarios]]\nname = "x"\nmust_hold = [{ principal = "a", action = "search" }]',
        '[[scenarios]]\nname = "x"\nmust_hold = [{ principal = "a", action = "search", colection = "c" }]',
    ],
)
def test_a_wrong_file_is_refused(source: str) -> None:
    with pytest.raises(InvalidRequest):
        scenarios.parse(source)
