"""Revocation under load: eight clients search on two server processes all the while, and none gets what was revoked
from the moment on at which whoever revoked it was told that it is done.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from serving import ask, outcome, over, server_processes
from support.postgres import RunDatabase
from support.server import ServerProcess
from support.waiting import until_async
from support.world import World

CLIENTS = 8
ROUNDS = 10
AFTERWARDS = 2  # calls of each client that begin after a revocation, before the round ends
QUESTION = "When is lunch served in the canteen?"
SUBJECT = "crowd"


@dataclass(slots=True)
class Crowd:
    """Clients that search again and again; each call is noted by the moment it began (monotonic) and its outcome."""

    server: ServerProcess
    token: str
    calls: list[list[tuple[float, str]]] = field(default_factory=lambda: [[] for _ in range(CLIENTS)])

    @asynccontextmanager
    async def searching(self) -> AsyncIterator[None]:
        """Search for as long as the context lasts."""
        tasks = [asyncio.create_task(self._search(own)) for own in self.calls]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended), ended

    async def _search(self, own: list[tuple[float, str]]) -> None:
        while True:
            began = time.monotonic()
            own.append((began, outcome(await ask(self.server, self.token, QUESTION))))

    def since(self, moment: float) -> list[list[str]]:
        """The outcomes of each client's calls that began after a moment."""
        return [[how for began, how in own if began > moment] for own in self.calls]

    async def have_each(self, moment: float, count: int, wanted: str | None = None) -> None:
        """Wait until every client has had so many calls that began after a moment, with an outcome if one is wanted."""

        async def enough() -> bool:
            return all(len([how for how in own if wanted in (None, how)]) >= count for own in self.since(moment))

        await until_async(enough, f"{count} calls of every client ({wanted})")


Revocation = Callable[[World], Awaitable[Callable[[], Awaitable[None]]]]


async def _by_grant(world: World) -> Callable[[], Awaitable[None]]:
    grant = await world.grant("search", "handbook", principal=SUBJECT)
    return partial(world.revoke, grant.id)


async def _by_membership(world: World) -> Callable[[], Awaitable[None]]:
    await world.members("diners", principals={SUBJECT})
    return partial(world.members, "diners", principals=set())


async def _by_deny(world: World) -> Callable[[], Awaitable[None]]:
    allow = await world.grant("search", "handbook", principal=SUBJECT)
    denies: list[UUID] = []

    async def deny() -> None:
        denies.append((await world.grant("search", "handbook", principal=SUBJECT, effect="deny")).id)
        await world.revoke(allow.id)
        await world.revoke(denies.pop())  # the allow is gone by now: the next round begins from nothing

    return deny


@pytest.fixture
async def crowd(
    shared_database: RunDatabase, shared_world: World, run_dir: Path, model_dir: Path
) -> AsyncIterator[Crowd]:
    await shared_world.members("diners", principals=set())
    await shared_world.grant("search", "handbook", role="diners")
    chosen = over(shared_database, STACKS_WORKERS="2")
    with ServerProcess(run_dir / "crowd", model_dir, "serve", chosen) as server:
        assert len(server_processes(server)) == 2
        yield Crowd(server, await shared_world.token(SUBJECT))


async def test_no_call_that_begins_after_a_revocation_finds_anything(crowd: Crowd, shared_world: World) -> None:
    found = after = 0
    async with crowd.searching():
        for number in range(ROUNDS):
            begun = time.monotonic()
            revoke = await (_by_grant, _by_membership, _by_deny)[number % 3](shared_world)
            await crowd.have_each(begun, 1, "ok")
            await revoke()
            revoked = time.monotonic()
            await crowd.have_each(revoked, AFTERWARDS)
            outcomes = [how for own in crowd.since(revoked) for how in own]
            assert set(outcomes) == {"denied"}, f"round {number}: {outcomes}"
            found += sum(how == "ok" for own in crowd.since(begun) for how in own)
            after += len(outcomes)
    assert found >= ROUNDS * CLIENTS and after >= ROUNDS * CLIENTS * AFTERWARDS
