"""A job belongs to a worker that is alive, however long its file takes; and to nobody once the worker is gone."""

import asyncio
import threading
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from support.postgres import RunDatabase
from support.waiting import until_async
from support.world import OWNER, World

from app.ingest import leases, worker
from app.ingest.parse.process import parse_isolated

LEASE_SECONDS = 0.5


def _row(database: RunDatabase, query: str) -> tuple[object, ...] | None:
    with database.superuser() as connection:
        return connection.execute(query.encode()).fetchone()


async def _leases_since(database: RunDatabase, number: int, started: object) -> bool:
    with database.superuser() as connection:
        query = "SELECT now() > %s::timestamptz + make_interval(secs => %s)"
        return connection.execute(query, [started, number * LEASE_SECONDS]).fetchone() == (True,)


async def test_a_file_that_takes_long_to_parse_keeps_its_worker(
    world: World, postgres_database: RunDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsing, go_on = threading.Event(), threading.Event()

    def slow(*arguments: Any, **limits: Any) -> Any:
        parsing.set()
        assert go_on.wait(60)
        return parse_isolated(*arguments, **limits)

    monkeypatch.setattr(worker, "parse_isolated", slow)
    hurried = replace(world.services.worker, lease_seconds=LEASE_SECONDS)
    await world.collection("handbook")
    await world.upload("handbook", "long.txt", "Lunch is served from noon until two in the afternoon.")
    work = asyncio.ensure_future(hurried.run_one())
    await asyncio.to_thread(parsing.wait, 60)
    (started,) = _row(postgres_database, "SELECT now()") or (None,)

    async def three_leases_on() -> bool:
        assert not await hurried.run_one(), "another worker takes the job over"
        return await _leases_since(postgres_database, 3, started)

    await until_async(three_leases_on, "three times the length of a lease")
    go_on.set()
    assert await work
    assert _row(postgres_database, "SELECT status, attempts FROM jobs") == ("done", 1)


async def test_a_job_of_a_dead_worker_is_taken_over_and_never_ended_twice(
    world: World, postgres_database: RunDatabase
) -> None:
    database = world.services.database
    await world.collection("handbook")
    await world.upload("handbook", "note.txt", "Lunch is served from noon until two in the afternoon.")
    dead = await database.write(partial(leases.take, seconds=LEASE_SECONDS))
    assert dead is not None

    async def taken_over() -> bool:
        return await world.services.worker.run_one()

    await until_async(taken_over, "the end of the dead worker's lease")
    assert not await database.write(partial(leases.renew, lease=dead, progress=0.5))
    assert not await database.write(partial(leases.end, lease=dead, status="failed"))
    assert _row(postgres_database, "SELECT status, attempts FROM jobs") == ("done", 2)
    assert (await world.publish("handbook")).documents == 1
    assert len((await world.search(OWNER, "When is lunch served?")).fragments) == 1
