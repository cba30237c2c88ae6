"""One connection for everybody: nothing of a call, finished or broken off, reaches the next one's transaction."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.postgres import TICKET_KEY, RunDatabase
from support.waiting import until_async
from support.world import World, local

from app import bootstrap
from app.analysis.embedder import Embedder
from app.config import Settings
from app.db.session import Transaction
from app.errors import IndexUnavailable, Timeout

SHARED = "The canteen opens at half past seven. Lunch is served from noon until two in the afternoon."
CLOSED = "The board's canteen opens at eight. Lunch for the board is served from one until three in the afternoon."
QUESTION = "When is lunch served in the canteen?"
GENERAL, RESTRICTED = local("general"), local("restricted")


@pytest.fixture
async def narrow(postgres_database: RunDatabase, tmp_path: Path, embedder: Embedder) -> AsyncIterator[World]:
    """A service with a pool of one, and two callers with different rights."""
    settings = Settings(data_dir=tmp_path, ticket_key=TICKET_KEY, database_pool=1, database_seconds=2)
    built = bootstrap.build(settings, postgres_database.service_url, embedder)
    world = await World(built).begin()
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", SHARED)
    await world.add("handbook", "board.txt", CLOSED, labels=("confidential",))
    await world.publish("handbook")
    await world.grant("search", "handbook", principal="restricted")
    await world.grant("search", "handbook", principal="general")
    await world.grant("search", "handbook", principal="general", effect="deny", label="confidential")
    yield world
    await built.database.close()


async def _seen(world: World, by: str) -> set[str]:
    return {fragment.text for fragment in (await world.search(local(by), QUESTION)).fragments}


async def _assert_nothing_left(world: World) -> None:
    async def ticket(transaction: Transaction) -> object:
        query = "SELECT coalesce(current_setting('stacks.ticket', true), '')"
        return (await transaction.connection.exec_driver_sql(query)).scalar_one()

    assert await world.services.database.read(ticket) == ""


async def test_two_callers_by_turns(narrow: World) -> None:
    for _ in range(5):
        assert await _seen(narrow, "restricted") == {SHARED, CLOSED}
        await _assert_nothing_left(narrow)
        assert await _seen(narrow, "general") == {SHARED}
    together = await asyncio.gather(*(_seen(narrow, by) for by in ("restricted", "general") * 5))
    assert together == [{SHARED, CLOSED}, {SHARED}] * 5


@contextmanager
def locked(database: RunDatabase) -> Iterator[None]:
    """Fragments cannot be read: a query for them waits, with its ticket presented."""
    with database.superuser() as connection, connection.transaction():
        connection.execute("LOCK TABLE chunks IN ACCESS EXCLUSIVE MODE")
        yield


async def _waits(database: RunDatabase) -> bool:
    with database.superuser() as connection:
        query = "SELECT FROM pg_stat_activity WHERE usename = 'stacks_login' AND wait_event_type = 'Lock'"
        return connection.execute(query).fetchone() is not None


async def test_a_call_broken_off_in_the_middle(narrow: World, postgres_database: RunDatabase) -> None:
    for _ in range(3):
        with locked(postgres_database):
            call = asyncio.ensure_future(narrow.search(RESTRICTED, QUESTION))
            await until_async(lambda: _waits(postgres_database), "a query that waits")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await _assert_nothing_left(narrow)
        assert await _seen(narrow, "general") == {SHARED}
        assert await _seen(narrow, "restricted") == {SHARED, CLOSED}


async def test_a_call_past_its_deadline(narrow: World, postgres_database: RunDatabase) -> None:
    with locked(postgres_database), pytest.raises((Timeout, IndexUnavailable)):
        await narrow.search(RESTRICTED, QUESTION)
    await _assert_nothing_left(narrow)
    assert await _seen(narrow, "general") == {SHARED}
