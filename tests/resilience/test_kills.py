"""kill -9 at ten moments of ingest and of publishing: what was published stays whole, and a new run completes."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
from serving import SECONDS, kill, over
from support.postgres import RunDatabase
from support.server import ROOT, ServerProcess
from support.waiting import until
from support.whole import assert_whole
from support.world import OWNER, World

from app.analysis.embedder import Embedder
from app.ingest.chunk import chunks
from app.ingest.parse import parse

Connection = psycopg.Connection[tuple[object, ...]]
SEED = 20261130
QUESTION = "Which lamp was repaired, painted and paid for?"
NAMES = [f"lamp-{number:02}.md" for number in range(12)]


def content(name: str, year: int = 2025) -> str:
    """A file of several chunks."""
    return "\n\n".join(
        f"# Lamp {name} in {year}, part {part}\n\nThe lamp {name} was repaired and painted in {year}, and paid for."
        for part in range(3)
    )


@dataclass(slots=True)
class Shelf:
    """A collection, and what its present edition must hold: by file name."""

    world: World
    database: RunDatabase
    embedder: Embedder
    published: dict[str, str] = field(default_factory=dict)

    async def assert_whole(self) -> None:
        """Nothing is half there, and exactly the chunks of what was published are found."""
        assert_whole(self.database)
        expected = sorted(text for name, whole in self.published.items() for text in self._chunks(name, whole))
        assert 0 < len(expected) <= 50
        found = await self.world.search(OWNER, QUESTION, "lamps", limit=50)
        assert sorted(fragment.text for fragment in found.fragments) == expected

    def _chunks(self, name: str, whole: str) -> list[str]:
        extracted = parse(whole.encode(), name)
        return [chunk.text for chunk in chunks(extracted, self.embedder.token_spans)]

    def count(self, query: str) -> int:
        """The number that a query gives, behind the scenes."""
        with self.database.superuser() as connection:
            row = connection.execute(query.encode()).fetchone()
        return int(str(row[0])) if row else 0

    def edition(self) -> int:
        return self.count("SELECT corpus_version FROM collections WHERE slug = 'lamps'")

    def let_leases_run_out(self) -> None:
        """The time passes after which a job of a dead worker is taken over."""
        with self.database.superuser() as connection:
            connection.execute("UPDATE jobs SET leased_until = now() WHERE status = 'running'")


@pytest.fixture
async def shelf(world: World, postgres_database: RunDatabase, embedder: Embedder) -> Shelf:
    """One document, published."""
    found = Shelf(world, postgres_database, embedder, {"lamp.md": content("lamp.md", 2024)})
    await world.collection("lamps")
    await world.add("lamps", "lamp.md", found.published["lamp.md"])
    await world.publish("lamps")
    return found


class Command:
    """One `stacks` command in a process group of its own."""

    def __init__(self, shelf: Shelf, place: Path, model_dir: Path, token: str, *arguments: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("STACKS_")}
        chosen = {"STACKS_DATA_DIR": str(place), "STACKS_MODEL_DIR": str(model_dir), "STACKS_TOKEN": token}
        self.log = place.with_suffix(".log")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app", *arguments],
                cwd=ROOT,
                env={**kept, **chosen, **over(shelf.database)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(SECONDS)

    def completed(self) -> str:
        """Wait for its end; what it said. AssertionError where it failed."""
        code = self._process.wait(SECONDS)
        said = self.log.read_text()
        assert code == 0, said[-3000:]
        return said


def look(condition: Callable[[], bool], times: int) -> None:
    """Look at the database `times` times, or until `condition` holds: a moment that no clock decides."""
    for _ in range(times):
        if condition():
            return


def jobs_and_looks(count: int) -> list[tuple[int, int]]:
    """For each kill: how many more jobs to wait for, and how often to look then. Never twice at the same job."""
    dice = random.Random(SEED)
    return [(dice.randint(1, 2) if number % 2 else 0, dice.randint(0, 400)) for number in range(count)]


@pytest.mark.parametrize("arguments", [("worker",), ("document", "add", "lamps")], ids=["worker", "document add"])
async def test_ingest_killed_and_run_again(
    shelf: Shelf, tmp_path: Path, model_dir: Path, arguments: tuple[str, ...]
) -> None:
    files = [tmp_path / name for name in NAMES]
    for file in files:
        file.write_text(content(file.name))
    if arguments == ("worker",):
        for file in files:
            await shelf.world.upload("lamps", file.name, file.read_bytes())
    else:
        arguments += tuple(map(str, files))
    token = await shelf.world.token("owner")
    start = partial(Command, shelf, tmp_path / "killed", model_dir, token, *arguments)
    done = "SELECT count(*) FROM jobs WHERE status = 'done'"
    for more, looks in jobs_and_looks(5):
        wanted = min(shelf.count(done) + more, len(files))
        command = start()
        until(partial(_at_work, shelf, command, wanted), "a job in hand")
        look(command.ended, looks)
        assert not command.ended(), command.log.read_text()[-3000:]
        command.kill()
        await shelf.assert_whole()
        shelf.let_leases_run_out()
    command = start()
    until(lambda: shelf.count(done) == len(files) + 1, "every job done")
    command.kill() if arguments == ("worker",) else command.completed()
    publication = await shelf.world.publish("lamps")
    assert publication.documents == len(files)
    shelf.published |= {file.name: file.read_text() for file in files}
    await shelf.assert_whole()
    assert shelf.count("SELECT count(*) FROM documents") == len(shelf.published)
    assert shelf.count("SELECT count(*) FROM document_versions") == len(shelf.published)
    assert shelf.count("SELECT count(DISTINCT source_id) FROM documents") == len(shelf.published)


def _at_work(shelf: Shelf, command: Command, wanted: int) -> bool:
    running = "SELECT count(*) FROM jobs WHERE status = 'running' AND leased_until > now()"
    done = "SELECT count(*) FROM jobs WHERE status = 'done'"
    return command.ended() or (shelf.count(done) >= wanted and shelf.count(running) > 0)


# Where a publish is held up and killed: at each table that it writes to, the log with its own row among them. Then at
# moments that a number of looks decides.
HELD_AT = ("document_versions", "chunk_index", "collections", "editions", "calls")
LOOKS = tuple(random.Random(SEED).randint(0, 60) for _ in range(5))


async def test_publishing_killed_and_run_again(shelf: Shelf, tmp_path: Path, model_dir: Path) -> None:
    token = await shelf.world.token("owner")
    start = partial(Command, shelf, tmp_path / "publish", model_dir, token, "publish", "lamps")
    drafts = await _revise(shelf, 2026)
    moments: tuple[str | int, ...] = (*HELD_AT, *LOOKS)
    for year, moment in enumerate(moments, start=2027):
        edition = shelf.edition()
        with shelf.database.superuser() as watcher:
            _kill_at(watcher, start(), moment)
            until(partial(_over, watcher), "the end of what the killed one had begun")
        raised = shelf.edition() - edition
        assert raised in ((0,) if isinstance(moment, str) else (0, 1))
        shelf.published |= drafts if raised else {}
        await shelf.assert_whole()
        drafts = await _revise(shelf, year) if raised else drafts
    edition = shelf.edition()
    start().completed()
    shelf.published |= drafts
    assert shelf.edition() == edition + 1
    await shelf.assert_whole()


def _kill_at(watcher: Connection, command: Command, moment: str | int) -> None:
    if isinstance(moment, str):
        with watcher.transaction():
            watcher.execute(f"LOCK TABLE {moment} IN SHARE MODE".encode())
            until(lambda: command.ended() or _held_up(watcher), f"a publish that waits for {moment}")
            assert not command.ended(), command.log.read_text()[-3000:]
            command.kill()
    else:
        until(lambda: command.ended() or _publishing(watcher), "a publish that has begun")
        look(command.ended, moment)
        command.kill()


def _held_up(watcher: Connection) -> bool:
    query = "SELECT FROM pg_locks l JOIN pg_stat_activity USING (pid) WHERE usename = 'stacks_login' AND NOT l.granted"
    return watcher.execute(query).fetchone() is not None


def _publishing(watcher: Connection) -> bool:
    query = """SELECT FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND relation = 'collections'::regclass AND mode = 'RowShareLock'"""
    return watcher.execute(query).fetchone() is not None


def _over(watcher: Connection) -> bool:
    return not _publishing(watcher)


async def _revise(shelf: Shelf, year: int) -> dict[str, str]:
    """New drafts of several documents."""
    revised = {name: content(name, year) for name in NAMES[:3]}
    for name, whole in revised.items():
        await shelf.world.add("lamps", name, whole)
    return revised


async def test_a_server_killed_while_it_publishes(
    shelf: Shelf, postgres_database: RunDatabase, run_dir: Path, model_dir: Path
) -> None:
    token = await shelf.world.token("owner")
    drafts = await _revise(shelf, 2026)
    server = ServerProcess(run_dir / "killed-server", model_dir, "serve", over(postgres_database))
    with server, postgres_database.superuser() as watcher:
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.extend(_publish(server, token)))
        with watcher.transaction():
            watcher.execute("LOCK TABLE chunk_index IN SHARE MODE")
            asking.start()
            until(lambda: _held_up(watcher), "a publish that waits")
            kill(*server.processes())
        asking.join(SECONDS)
        assert answers == []
        until(lambda: not _publishing(watcher), "the end of what the killed one had begun")
        await shelf.assert_whole()
        server.stop()
        server.start()
        assert [answer.json()["corpus_version"] for answer in _publish(server, token)] == ["lamps@2"]
    shelf.published |= drafts
    await shelf.assert_whole()


def _publish(server: ServerProcess, token: str) -> list[httpx.Response]:
    """What it answered: nothing when it was killed."""
    url, headers = f"{server.url}/api/v1/collections/lamps/publish", {"Authorization": f"Bearer {token}"}
    with suppress(httpx.TransportError):
        return [httpx.post(url, json={}, headers=headers, timeout=SECONDS)]
    return []
