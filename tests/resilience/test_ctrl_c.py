"""Ctrl-C, SIGTERM and SIGKILL on a whole demo: what is left of it, and what the next start finds."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import SECONDS, kill
from support.server import ServerProcess
from support.waiting import until


@pytest.fixture(scope="module")
def demo(run_dir: Path, model_dir: Path) -> Iterator[ServerProcess]:
    """A demo of our own, with two server processes and an ingest worker, loaded once."""
    chosen = {"STACKS_WORKERS": "2", "STACKS_INGEST_WORKERS": "1", "STACKS_SHARED_BUFFERS": "32MB"}
    server = ServerProcess(run_dir / "interrupted", model_dir, "demo", chosen)
    with server:
        yield server


def _ctrl_c(server: ServerProcess) -> None:
    """SIGINT to every process of its group, as a terminal does, and wait for the end of the one that was started."""
    group = os.getpgid(server.pid)
    ours = [pid for pid in server.processes() if os.getpgid(pid) == group]
    assert len(ours) >= 4, "the server, two that answer, an ingest worker"
    with _ending(server.pid):
        for pid in ours:
            os.kill(pid, signal.SIGINT)


@contextmanager
def _ending(pid: int) -> Iterator[None]:
    """Wait, after what is done in the context, for the end of a process."""
    handle = os.pidfd_open(pid)
    yield
    ended, _, _ = select.select([handle], [], [], SECONDS)
    os.close(handle)
    assert ended, "it did not end"


def _kept(server: ServerProcess) -> dict[str, Any]:
    """What an owner sees of its collections, and a search that finds something."""
    headers = {"Authorization": f"Bearer {server.tokens['owner']}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=SECONDS) as http:
        seen = {slug: http.get(f"/api/v1/collections/{slug}").json() for slug in ("handbook", "board")}
        found = http.post("/api/v1/search", json={"query": "travel policy hotels", "collection": "handbook"}).json()
    assert found["status"] == "ok"
    return {**seen, "found": found["results"]}


def test_interrupted_and_started_again(demo: ServerProcess) -> None:
    before, tokens = _kept(demo), demo.tokens
    _ctrl_c(demo)
    demo.stop()  # AssertionError where a process is left
    demo.start()
    assert _kept(demo) == before
    assert demo.tokens == tokens


def test_killed_it_takes_all_that_it_had_started_along(demo: ServerProcess) -> None:
    before = _kept(demo)
    kill(demo.pid)
    until(lambda: not _without_postgres(demo), "the end of the processes that it had started")
    kill(*demo.processes())
    demo.stop()
    demo.start()
    assert _kept(demo) == before


def test_terminated(demo: ServerProcess) -> None:
    with _ending(demo.pid):
        os.kill(demo.pid, signal.SIGTERM)
    demo.stop()  # AssertionError where a process is left
    assert "Traceback" not in demo.log.read_text()


def _without_postgres(server: ServerProcess) -> list[str]:
    return [command for command in server.processes().values() if "postgres" not in command]
