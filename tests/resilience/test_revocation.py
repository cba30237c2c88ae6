"""What was revoked is refused at the very next call, on whichever process that lands, though each had used it before.

Two servers over one database, and one server with two processes, of which either is made to answer by halting the
other.
"""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from serving import ask, outcome, over, server_processes, stop
from support.postgres import RunDatabase
from support.server import ServerProcess
from support.waiting import until_async
from support.world import World

from app.authz.builtin import OPERATOR
from app.identity import tokens

QUESTION = "When is lunch served in the canteen?"
Change = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Process:
    """One of the processes that may answer, and the others of its server, which are halted meanwhile."""

    server: ServerProcess
    others: tuple[int, ...] = ()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let nobody else answer."""
        try:
            stop(self.others)
            yield
        finally:
            for pid in self.others:
                os.kill(pid, signal.SIGCONT)

    async def outcome(self, token: str) -> str:
        """How a search ends here."""
        with self.alone():
            return outcome(await ask(self.server, token, QUESTION))


@pytest.fixture(scope="module", params=["two servers", "two workers"])
async def desks(
    request: pytest.FixtureRequest, shared_database: RunDatabase, shared_world: World, run_dir: Path, model_dir: Path
) -> AsyncIterator[list[Process]]:
    """Two processes that search the same database."""
    if request.param == "two servers":
        with (
            ServerProcess(run_dir / "desk-one", model_dir, "serve", over(shared_database)) as one,
            ServerProcess(run_dir / "desk-two", model_dir, "serve", over(shared_database)) as other,
        ):
            yield [Process(one), Process(other)]
    else:
        chosen = over(shared_database, STACKS_WORKERS="2")
        with ServerProcess(run_dir / "desk-both", model_dir, "serve", chosen) as both:
            one_pid, other_pid = server_processes(both)
            found = [Process(both, (other_pid,)), Process(both, (one_pid,))]
            for process in found:  # one of them may be starting still
                await until_async(partial(_answers, process), "an answer of each worker")
            yield found


async def _answers(process: Process) -> bool:
    return await process.outcome("no token") == "HTTP 401"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody new, with a token."""

    world: World
    subject: str
    token: str

    @classmethod
    async def of(cls, world: World) -> "Visitor":
        subject = f"visitor-{uuid4().hex[:12]}"
        return cls(world, subject, await world.token(subject))


async def _grant_revoked(visitor: Visitor) -> Change:
    grant = await visitor.world.grant("search", "handbook", principal=visitor.subject)
    return partial(visitor.world.revoke, grant.id)


async def _deny_added(visitor: Visitor) -> Change:
    await visitor.world.grant("search", "handbook", principal=visitor.subject)

    async def deny() -> None:
        await visitor.world.grant("search", "handbook", principal=visitor.subject, effect="deny")

    return deny


async def _membership_removed(visitor: Visitor) -> Change:
    role = f"role-of-{visitor.subject}"
    await visitor.world.members(role, principals={visitor.subject})
    await visitor.world.grant("search", "handbook", role=role)
    return partial(visitor.world.members, role, principals=set())


async def _nested_role_removed(visitor: Visitor) -> Change:
    outer, inner = f"outer-{visitor.subject}", f"inner-{visitor.subject}"
    await visitor.world.members(inner, principals={visitor.subject})
    await visitor.world.members(outer, roles={inner})
    await visitor.world.grant("search", "handbook", role=outer)
    return partial(visitor.world.members, outer, roles=set())


async def _token_revoked(visitor: Visitor) -> Change:
    await visitor.world.grant("search", "handbook", principal=visitor.subject)
    id_ = visitor.token.split("_")[1]
    revoke = partial(tokens.revoke, id_=id_, by=OPERATOR, subject=None)
    return partial(visitor.world.change, revoke, OPERATOR)


CHANGES = [
    (_grant_revoked, "denied"),
    (_deny_added, "denied"),
    (_membership_removed, "denied"),
    (_nested_role_removed, "denied"),
    (_token_revoked, "HTTP 401"),
]


@pytest.mark.parametrize(("prepare", "expected"), CHANGES)
async def test_the_next_call_is_refused_wherever_it_lands(
    desks: list[Process], shared_world: World, prepare: Callable[[Visitor], Awaitable[Change]], expected: str
) -> None:
    visitor = await Visitor.of(shared_world)
    change = await prepare(visitor)
    assert [await desk.outcome(visitor.token) for desk in desks] == ["ok", "ok"]
    await change()
    assert [await desk.outcome(visitor.token) for desk in desks] == [expected, expected]


async def test_a_rule_ends_with_its_time_wherever_the_call_lands(
    desks: list[Process], shared_world: World, shared_database: RunDatabase
) -> None:
    for seconds in (2, 8, 32):  # longer where the machine is too slow to ask everybody in time
        visitor = await Visitor.of(shared_world)
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        await shared_world.grant("search", "handbook", principal=visitor.subject, valid_until=until)
        before = [await desk.outcome(visitor.token) for desk in desks]
        in_time = not await _passed(shared_database, until)
        await until_async(partial(_passed, shared_database, until), "the end of the rule")
        assert [await desk.outcome(visitor.token) for desk in desks] == ["denied", "denied"]
        if in_time:
            assert before == ["ok", "ok"]
            return
    pytest.fail("the rule was over each time before every process had used it")


async def _passed(database: RunDatabase, moment: datetime) -> bool:
    with database.superuser() as connection:
        return connection.execute("SELECT now() >= %s", [moment]).fetchone() == (True,)
