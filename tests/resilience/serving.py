"""What the tests of outages, kills and revocation share: servers over one database, callers, signals to processes."""

import os
import select
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from support.postgres import TICKET_KEY, RunDatabase
from support.server import ServerProcess
from support.waiting import until

from app.db.embedded import processes

SECONDS = 60  # bound of anything that must not hang


def over(database: RunDatabase, **settings: str) -> dict[str, str]:
    """The environment of a process that works on `database`."""
    known = {"STACKS_DATABASE_URL": database.service_url, "STACKS_TICKET_KEY": TICKET_KEY, "STACKS_INGEST_WORKERS": "0"}
    return {**known, **settings}


async def ask(server: ServerProcess, token: str, query: str, **arguments: Any) -> httpx.Response:
    """`POST /search` on a connection of its own, so that whichever worker is free may take it."""
    headers = {"Authorization": f"Bearer {token}", "Connection": "close"}
    async with httpx.AsyncClient(timeout=SECONDS) as http:
        return await http.post(f"{server.url}/api/v1/search", json={"query": query, **arguments}, headers=headers)


def outcome(response: httpx.Response) -> str:
    """The outcome code of an answer, or `HTTP 401`."""
    if response.status_code == 401:
        return "HTTP 401"
    body = response.json()
    return str(body["status"] if response.status_code == 200 else body["code"])


@asynccontextmanager
async def mcp_client(server: ServerProcess, token: str) -> AsyncIterator[Client]:
    """The official MCP client as the holder of `token`."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS) as http,
        Client(streamable_http_client(server.mcp_url, http_client=http), read_timeout_seconds=SECONDS) as client,
    ):
        yield client


async def mcp_search(client: Client, query: str) -> tuple[bool, dict[str, Any]]:
    """Call the tool: whether it was an error, and the envelope."""
    result = await client.call_tool("search_documents", {"query": query})
    assert isinstance(result.structured_content, dict)
    return bool(result.is_error), result.structured_content


def postmaster(data_dir: Path) -> int:
    """The number of the embedded server's first process."""
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


@contextmanager
def halted(data_dir: Path) -> Iterator[None]:
    """The embedded Postgres stopped with all its processes, the first one first so that it makes no more."""
    first = postmaster(data_dir)
    stop([first])
    everything = processes.servers_in((data_dir / "postgres").resolve())
    try:
        stop(everything)
        yield
    finally:
        for pid in everything:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def stop(pids: Iterable[int]) -> None:
    """SIGSTOP, and wait until the kernel says so."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        until(partial(_is_halted, pid), "a halted process")


def _is_halted(pid: int) -> bool:
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def kill(*pids: int) -> None:
    """SIGKILL, and wait until they are gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            os.kill(pid, signal.SIGKILL)
            select.select([handle], [], [], SECONDS)
            os.close(handle)


def server_processes(server: ServerProcess) -> list[int]:
    """The processes that answer, of a server with more than one."""
    return [pid for pid, command in server.processes().items() if "spawn_main" in command]
