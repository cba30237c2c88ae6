"""Postgres halted and killed under a running server: `index_unavailable`, never `empty`, no hang; then as before."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest
from serving import SECONDS, ask, halted, kill, mcp_client, mcp_search, outcome, postmaster
from support.server import ServerProcess
from support.waiting import until_async
from support.world import World

from app import bootstrap
from app.analysis.embedder import Embedder
from app.config import Settings
from app.db.embedded.holds import turn

QUESTION = "When is lunch served in the canteen?"
CANTEEN = "The canteen opens at half past seven. Lunch is served from noon until two in the afternoon."
NOBODYS = f"stk_{'a' * 16}_{'b' * 43}"


@dataclass(frozen=True, slots=True)
class Desk:
    """A server on its own embedded Postgres, and somebody who may search there."""

    server: ServerProcess
    token: str

    @property
    def data_dir(self) -> Path:
        return self.server.data_dir

    async def answers(self) -> bool:
        response = await ask(self.server, self.token, QUESTION)
        assert outcome(response) in ("ok", "index_unavailable")
        return bool(response.status_code == 200)


@pytest.fixture(scope="module")
async def desk(run_dir: Path, model_dir: Path, embedder: Embedder) -> AsyncIterator[Desk]:
    """The server as `stacks serve` starts it, with a database that must answer within a second and a half."""
    data_dir = run_dir / "outage"
    chosen = {"STACKS_DATABASE_SECONDS": "1.5", "STACKS_SHARED_BUFFERS": "32MB", "STACKS_INGEST_WORKERS": "0"}
    with ServerProcess(data_dir, model_dir, "serve", chosen) as server:
        yield Desk(server, await _filled(Settings(data_dir=data_dir), embedder))


async def _filled(settings: Settings, embedder: Embedder) -> str:
    with bootstrap.postgres(settings) as found:
        built = bootstrap.build(settings, found.service_url, embedder)
        world = await World(built).begin()
        await world.collection("handbook")
        await world.add("handbook", "canteen.txt", CANTEEN)
        await world.publish("handbook")
        await world.grant("search", "handbook", principal="general")
        token = await world.token("general")
        await built.database.close()
    return token


async def _assert_unavailable(desk: Desk) -> list[str]:
    """Every door says so, to a client that connects now, and to nobody else more than that; the calls' ids."""
    async with mcp_client(desk.server, desk.token) as client:
        is_error, envelope = await mcp_search(client, QUESTION)
    assert (is_error, envelope["status"], envelope["results"]) == (True, "index_unavailable", [])
    calls = [envelope["call_id"]]
    for token in (desk.token, NOBODYS):
        refused = await ask(desk.server, token, QUESTION)
        assert (refused.status_code, outcome(refused)) == (503, "index_unavailable")
        assert refused.headers["content-type"] == "application/problem+json"
        calls.append(refused.json()["call_id"])
    async with httpx.AsyncClient(base_url=desk.server.url, timeout=SECONDS) as http:
        assert (await http.get("/health/ready")).status_code == 503
        assert (await http.get("/health/live")).status_code == 200
        made_up = await http.post("/mcp", json={}, headers={"Authorization": "Bearer nonsense"})
        assert made_up.status_code == 401
    return calls


def _written(desk: Desk, calls: list[str]) -> list[object]:
    """The outcomes in the log of these calls, a row each."""
    with bootstrap.postgres(Settings(data_dir=desk.data_dir)) as found:
        url = found.owner_url.replace("+psycopg", "")
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT outcome FROM calls WHERE call_id = ANY(%s::uuid[])", [calls])
            return [outcome for (outcome,) in rows.fetchall()]


async def _assert_written(desk: Desk, calls: list[str]) -> None:
    async def all_there() -> bool:
        return len(_written(desk, calls)) == len(calls)

    await until_async(all_there, "the calls of the outage in the log")
    assert _written(desk, calls) == ["index_unavailable"] * len(calls)

    async def spool_empty() -> bool:
        return not _waiting(desk.data_dir / "audit")

    await until_async(spool_empty, "an empty spool")


def _waiting(spool: Path) -> list[Path]:
    return [*spool.glob("*.jsonl"), *spool.glob("*.claimed")]


async def test_halted_and_continued(desk: Desk) -> None:
    async with asyncio.timeout(SECONDS), mcp_client(desk.server, desk.token) as earlier:
        assert (await mcp_search(earlier, QUESTION))[1]["status"] == "ok"
        with halted(desk.data_dir):
            is_error, envelope = await mcp_search(earlier, QUESTION)
            assert (is_error, envelope["status"], envelope["results"]) == (True, "index_unavailable", [])
            calls = [envelope["call_id"], *await _assert_unavailable(desk)]
        await until_async(desk.answers, "an answer after the halt")
        is_error, envelope = await mcp_search(earlier, QUESTION)
        assert (is_error, envelope["results"][0]["text"]) == (False, CANTEEN)
    await _assert_written(desk, calls)


async def test_a_crowd_during_a_halt_does_not_use_the_pool_up(desk: Desk) -> None:
    async with asyncio.timeout(SECONDS):
        with halted(desk.data_dir):
            crowd = await asyncio.gather(*(ask(desk.server, desk.token, QUESTION) for _ in range(50)))
            assert {outcome(response) for response in crowd} == {"index_unavailable"}
            calls = [response.json()["call_id"] for response in crowd]
        await until_async(desk.answers, "an answer after the halt")
        crowd = await asyncio.gather(*(ask(desk.server, desk.token, QUESTION) for _ in range(20)))
    assert {outcome(response) for response in crowd} == {"ok"}
    await _assert_written(desk, calls)


async def test_killed_and_brought_back(desk: Desk) -> None:
    pid = desk.server.pid
    async with asyncio.timeout(SECONDS), mcp_client(desk.server, desk.token) as earlier:
        assert (await mcp_search(earlier, QUESTION))[1]["status"] == "ok"
        with turn(desk.data_dir):  # the server's own attendant has to wait until we have seen the outage
            kill(postmaster(desk.data_dir))
            is_error, envelope = await mcp_search(earlier, QUESTION)
            assert (is_error, envelope["status"], envelope["results"]) == (True, "index_unavailable", [])
            calls = [envelope["call_id"], *await _assert_unavailable(desk)]
        await until_async(desk.answers, "an answer after the kill")
        assert (await mcp_search(earlier, QUESTION))[1]["results"][0]["text"] == CANTEEN
    assert desk.server.pid == pid
    await _assert_written(desk, calls)
