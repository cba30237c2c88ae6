"""kill -9 of server, worker and Postgres at random moments of a load: every file is in exactly once, or listed failed.

A run in CI is a short one; STACKS_LOAD_FILES=200 STACKS_LOAD_KILLS=30 is the full one. `-s` shows its figures.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from cli.commands import Stacks
from serving import SECONDS, kill, postmaster
from support.postgres import SERVICE_LOGIN, RunDatabase
from support.server import ServerProcess
from support.waiting import until
from support.whole import assert_whole

from app.db.embedded import OWNER_LOGIN, SUPERUSER, EmbeddedCluster
from app.db.secrets import secret

FILES = int(os.environ.get("STACKS_LOAD_FILES", "40"))
KILLS = int(os.environ.get("STACKS_LOAD_KILLS", "6"))
SEED = 20261201
PATIENCE = 300
BACKLOG = 4  # so that the load lasts as long as the reading, and every kill finds work in hand
TARGETS = ("worker", "postgres", "server")
SETTINGS = {"STACKS_INGEST_WORKERS": "2", "STACKS_SHARED_BUFFERS": "32MB"}

BROKEN = tuple(range(7, FILES, 25))  # files that nobody can read: they must be listed


def name(number: int) -> str:
    return f"lamp-{number:03}.{'pdf' if number in BROKEN else 'md'}"


def content(number: int) -> bytes:
    if number in BROKEN:
        return b"%PDF-1.7\nnot really, said " + str(number).encode()
    parts = (f"# Lamp {number}, part {part}\n\nLamp {number} was repaired and paid for." for part in range(3))
    return "\n\n".join(parts).encode()


class Load:
    """Uploads one file after the other, each until it is taken, and publishes now and then."""

    def __init__(self, server: ServerProcess, token: str) -> None:
        self._http = httpx.Client(
            base_url=f"{server.url}/api/v1/collections/lamps",
            headers={"Authorization": f"Bearer {token}"},
            timeout=SECONDS,
        )
        self.sent = 0
        self.fault: AssertionError | None = None
        self._given_up = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._given_up = kind is not None
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the load does not end"
        if self.fault is not None and kind is None:
            raise self.fault

    def is_past(self, moment: int) -> bool:
        """Whether so many files are sent, or no more will be."""
        return self.sent >= moment or not self._thread.is_alive()

    def _run(self) -> None:
        try:
            for number in range(FILES):
                until(self._has_room, "a short queue", PATIENCE)
                until(partial(self._upload, number), name(number), PATIENCE)
                self.sent += 1
                if number % 10 == 9:
                    self.ask("POST", "/publish", json={})
        except AssertionError as fault:
            self.fault = fault

    def ask(self, method: str, path: str, **what: Any) -> httpx.Response | None:
        """An answer; None from who is dead, or dies meanwhile."""
        assert not self._given_up, "given up"
        with suppress(httpx.TransportError):
            answer = self._http.request(method, path, **what)
            return None if answer.status_code >= 500 else answer
        return None

    def _has_room(self) -> bool:
        waiting = self.ask("GET", "/jobs", params={"status": "queued", "limit": BACKLOG})
        return waiting is not None and len(waiting.json()["items"]) < BACKLOG

    def _upload(self, number: int) -> bool:
        answer = self.ask("POST", "/documents", files={"file": (name(number), content(number))})
        assert answer is None or answer.status_code == 202, answer.text
        return answer is not None


class Place:
    """A server with a Postgres of its own, and what is behind it."""

    def __init__(self, server: ServerProcess, stacks: Stacks) -> None:
        self.server = server
        self.stacks = stacks

    @contextmanager
    def database(self) -> Iterator[RunDatabase]:
        """Its database, started again if need be."""
        data_dir = self.server.data_dir
        with EmbeddedCluster(data_dir, shared_buffers="32MB") as address:
            yield RunDatabase(
                address.url(SERVICE_LOGIN, secret(data_dir, "service")),
                address.url(OWNER_LOGIN, secret(data_dir, "owner")),
                address.url(SUPERUSER, secret(data_dir, "superuser")),
            )

    def kill(self, target: str) -> None:
        if target == "server":
            kill(self.server.pid)
            self.explained()
            self.server.start()
        elif target == "postgres":
            until(lambda: self._postmaster() is not None, "a Postgres to kill", PATIENCE)
            kill(self._postmaster() or 0)
        else:
            until(lambda: bool(self._workers()), "a worker to kill", PATIENCE)
            kill(self._workers()[0])

    def _postmaster(self) -> int | None:
        with suppress(FileNotFoundError, IndexError, ValueError):
            number = postmaster(self.server.data_dir)
            return number if Path(f"/proc/{number}").exists() else None
        return None

    def _workers(self) -> list[int]:
        return [pid for pid, command in self.server.processes().items() if "-m app worker" in command]

    def explained(self) -> dict[str, int]:
        """What `stacks status` counts, whoever is dead: nothing is left out."""
        told = self.stacks("status", "--json").json["jobs"]
        assert set(told) == {"queued", "retrying", "running", "stalled", "failed", "workers"}
        assert told["stalled"] <= told["running"]
        assert told["retrying"] <= told["queued"]
        return dict(told)


@pytest.fixture
def place(run_dir: Path, model_dir: Path) -> Iterator[Place]:
    data_dir = run_dir / "load"
    with ServerProcess(data_dir, model_dir, "serve", SETTINGS) as server:
        yield Place(server, Stacks(data_dir, model_dir))


def test_killed_while_it_loads(place: Place) -> None:
    dice, began = random.Random(SEED), time.monotonic()
    place.stacks("collection", "create", "lamps", "--title", "Lamps", "--owner", "owner")
    targets = [TARGETS[number % len(TARGETS)] for number in range(KILLS)]
    dice.shuffle(targets)
    with Load(place.server, place.stacks.token("owner")) as load:
        for target, moment in zip(targets, sorted(dice.randint(0, FILES - 1) for _ in targets), strict=True):
            until(partial(load.is_past, moment), "a file", PATIENCE)
            for _ in range(dice.randint(0, 60)):
                place.server.processes()  # some milliseconds each
            place.kill(target)
            with place.database() as database:
                assert_whole(database)
    until(lambda: _is_idle(place), "the end of every job", PATIENCE)
    _publish(load)
    with place.database() as database:
        assert_whole(database)
        _every_file_once(database, load)
    told = place.explained()
    assert (told["queued"], told["running"]) == (0, 0)
    assert told["failed"] >= len(BROKEN)
    assert "stacks job list" in place.stacks("status").out
    print(f"{FILES} files, {dict(Counter(targets))} killed, {time.monotonic() - began:.0f} s; {told}")


def _is_idle(place: Place) -> bool:
    with suppress(psycopg.OperationalError), place.database() as database, database.superuser() as behind:
        return behind.execute("SELECT FROM jobs WHERE status IN ('queued', 'running')").fetchone() is None
    return False


def _publish(load: Load) -> None:
    def published() -> bool:
        answer = load.ask("POST", "/publish", json={"wait": True})
        assert answer is None or answer.status_code == 200, answer.text
        return answer is not None

    until(published, "the last edition", PATIENCE)


def _every_file_once(database: RunDatabase, load: Load) -> None:
    """One document for each file: live, with all of its chunks; or failed, and listed with the reason."""
    with database.superuser() as behind:
        documents = behind.execute("SELECT source_id FROM documents").fetchall()
        live = behind.execute(
            """SELECT d.source_id, count(c.id) FROM documents d JOIN document_versions v ON v.document_id = d.id
               JOIN chunks c ON c.document_id = v.document_id AND c.version = v.version
               WHERE v.published_from IS NOT NULL AND v.published_until IS NULL GROUP BY d.source_id"""
        ).fetchall()
        spent = behind.execute("SELECT sum(attempts), sum(deaths), count(*) FROM jobs").fetchone()
    expected = {name(number) for number in range(FILES)}
    assert sorted(str(source) for (source,) in documents) == sorted(expected)
    answer = load.ask("GET", "/jobs", params={"status": "failed", "limit": 200})
    assert answer is not None
    failed = {one["file_name"]: one["code"] for one in answer.json()["items"]}
    assert all(failed.values())
    assert {str(source) for source, _ in live} == expected - set(failed)
    assert {count for _, count in live} <= {1, 2, 3}
    assert len({count for _, count in live}) == 1, "files alike have as many chunks each"
    assert {name(number) for number in BROKEN} <= set(failed)
    print(f"attempts, deaths, jobs: {spent}; failed: {failed}")
