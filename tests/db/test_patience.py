"""Publishing may take longer than a call may otherwise, and than a ticket lives otherwise; half of it is never done."""

import pytest
from sqlalchemy import text
from support.postgres import RunDatabase
from support.world import OWNER, World

from app.db import tickets
from app.db.engine import create_engine
from app.db.session import Database, Transaction
from app.domain.calls import Call, Entrypoint
from app.errors import InternalError, StacksError
from app.ingest import publish, turnover


async def _slow(transaction: Transaction) -> str:
    await transaction.connection.execute(text("SELECT pg_sleep(0.6)"))
    return "done"


async def test_a_change_with_a_deadline_of_its_own_outlasts_the_usual_one(
    world: World, postgres_database: RunDatabase
) -> None:
    services = world.services
    engine = create_engine(postgres_database.service_url, statement_timeout_ms=200)
    database = Database(engine, check_tickets=services.printer.check, deadline_seconds=0.3)
    try:
        with pytest.raises(StacksError):
            await database.write(_slow)
        assert await database.write(_slow, deadline=30) == "done"
        row = await database.read(lambda snapshot: snapshot.connection.execute(text("SHOW statement_timeout")))
        assert row.scalar_one() == "200ms", "the patience of one transaction is not the next one's"
    finally:
        await database.close()
    assert await services.calls.change(Call(Entrypoint.CLI, "slow", OWNER), _slow, deadline=30) == "done"


@pytest.fixture
async def slow_turnover(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A collection whose next turnover outlasts an ordinary ticket."""
    await world.collection("house")
    await world.add("house", "kettle", "The kettle is in the cellar.")
    monkeypatch.setattr(tickets, "LIFETIME_SECONDS", 0.2)
    monkeypatch.setattr(turnover, "_WITHDRAW_INDEX", text("SELECT pg_sleep(0.5)"))
    return world


async def _published(world: World) -> str:
    services = world.services

    async def work(transaction: Transaction) -> turnover.Publication:
        return await publish.publish(transaction, services.authority, services.printer, OWNER, "house")

    return (await services.database.write(work, deadline=30)).corpus_version


async def test_a_ticket_lives_as_long_as_its_transaction_may_take(slow_turnover: World) -> None:
    assert await _published(slow_turnover) == "house@1"
    found = await slow_turnover.search(OWNER, "where is the kettle", "house")
    assert [fragment.text for fragment in found.fragments] == ["The kettle is in the cellar."]


async def test_an_edition_of_which_the_database_hides_a_part_is_not_made(
    slow_turnover: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tickets, "GRACE_SECONDS", -30.0)
    with pytest.raises(InternalError):
        await _published(slow_turnover)

    monkeypatch.undo()
    assert await _published(slow_turnover) == "house@1"
