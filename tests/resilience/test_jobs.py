"""The queue: a job exactly with its upload, given to one worker at a time, in a fair order, put back when something is
away, ended by whoever may, and tried again."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from support.postgres import RunDatabase
from support.waiting import until, until_async
from support.whole import assert_whole
from support.world import OWNER, World, local

from app.analysis.embedder import Embedder
from app.db.session import Transaction
from app.domain.principal import Principal
from app.errors import Conflict, Denied, EmbedderUnavailable, LimitExceeded, NotFound
from app.ingest import crew, delivery, jobs, leases, store, worker
from app.ingest.jobs import JobCard
from app.ingest.leases import Lease
from app.ingest.parse.process import parse_isolated
from app.ingest.store import Upload

TEXT = "Lunch is served from noon until two in the afternoon."
QUEUED = "SELECT count(*) FROM procrastinate.procrastinate_jobs"


@dataclass(frozen=True, slots=True)
class Desk:
    """A world, and what can be seen of it from behind."""

    world: World
    database: RunDatabase

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self.database.superuser() as connection:
            cursor = connection.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description is not None else []

    async def take(self, only: UUID | None = None) -> Lease | None:
        return await self.world.services.database.write(partial(leases.take, only=only))

    async def card(self, id_: UUID, by: Principal = OWNER) -> JobCard:
        services = self.world.services
        return await services.database.read(lambda snapshot: jobs.shown(snapshot, services.printer, by, id_))

    async def change(self, what: Callable[..., Any], id_: UUID, by: Principal = OWNER) -> JobCard:
        """`jobs.cancel` or `jobs.retry`."""
        printer = self.world.services.printer
        card: JobCard = await self.world.change(lambda transaction: what(transaction, printer, by, id_), by)
        return card

    def time_passes(self) -> None:
        """Leases run out, and pauses are over."""
        self.rows("UPDATE jobs SET leased_until = now() - interval '1 second' WHERE status = 'running'")
        self.rows("UPDATE procrastinate.procrastinate_jobs SET scheduled_at = NULL")

    def work(self, **changed: Any) -> Any:
        """A worker like the world's, but for what is `changed`."""
        return replace(self.world.services.worker, **changed)


@pytest.fixture
async def desk(world: World, postgres_database: RunDatabase) -> Desk:
    await world.collection("handbook")
    return Desk(world, postgres_database)


class Parsing:
    """A parser that waits until it is let go, or given up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.given_up: list[threading.Event] = []
        monkeypatch.setattr(worker, "parse_isolated", self)

    def __call__(self, *arguments: Any, given_up: threading.Event, **limits: Any) -> Any:
        self.given_up.append(given_up)
        self.begun.set()
        until(lambda: self.go_on.is_set() or given_up.is_set(), "the end of a parse")
        if given_up.is_set():
            raise LimitExceeded
        return parse_isolated(*arguments, given_up=given_up, **limits)

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 60)


@pytest.fixture
def parsing(monkeypatch: pytest.MonkeyPatch) -> Parsing:
    return Parsing(monkeypatch)


# --- with the upload, and for one worker --------------------------------------------------------------------------


async def test_an_upload_that_is_taken_back_leaves_no_job_and_one_that_stays_has_it(desk: Desk) -> None:
    services = desk.world.services

    async def fails(transaction: Transaction) -> None:
        upload = Upload("note.txt", TEXT.encode())
        await store.store(
            transaction, services.authority, services.printer, OWNER, "handbook", upload, size_max=services.upload_max
        )
        raise Conflict

    with pytest.raises(Conflict):
        await desk.world.change(fails)
    assert desk.rows(QUEUED) == desk.rows("SELECT count(*) FROM jobs") == [(0,)]
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    queued = "SELECT p.args, j.status FROM procrastinate.procrastinate_jobs p JOIN jobs j ON j.delivery = p.id"
    assert desk.rows(queued) == [({"job": str(receipt.job_id)}, "queued")]
    await desk.world.services.worker.run_one()
    assert desk.rows(QUEUED) == [(0,)]
    assert (await desk.card(receipt.job_id)).status == "done"


async def test_many_workers_do_each_job_once(desk: Desk) -> None:
    receipts = [await desk.world.upload("handbook", f"note-{n}.txt", f"{TEXT} ({n})") for n in range(12)]

    async def busily() -> int:
        done = 0
        while await desk.world.services.worker.run_one():
            done += 1
        return done

    assert sum(await asyncio.gather(*(busily() for _ in range(4)))) == len(receipts)
    assert desk.rows("SELECT DISTINCT status, attempts, deaths FROM jobs") == [("done", 1, 0)]
    assert_whole(desk.database)


async def test_a_job_that_was_given_on_is_nothing_to_its_earlier_worker(desk: Desk) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    early = await desk.take()
    assert early is not None
    desk.time_passes()
    late = await desk.take()
    assert late is not None
    assert (late.id, late.attempts, late.deaths) == (receipt.job_id, 2, 1)
    write = desk.world.services.database.write
    assert not await write(partial(leases.renew, lease=early, progress=0.5))
    assert not await write(partial(leases.put_back, lease=early))
    assert not await write(partial(leases.end, lease=early, status="failed"))
    assert await write(partial(leases.renew, lease=late, progress=0.5))
    assert await write(partial(leases.put_back, lease=late))
    assert_whole(desk.database)


async def test_a_file_that_kills_its_workers_is_a_dead_letter_after_three(desk: Desk) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    for death in range(leases.DEATHS_MAX):
        assert await desk.take() is not None
        desk.time_passes()
        if death > 0:
            assert await desk.take() is None, "every death but the first is followed by a pause"
            desk.time_passes()
    assert await desk.world.services.worker.run_one()
    card = await desk.card(receipt.job_id)
    assert (card.status, card.code) == ("failed", "unreadable")
    assert "died" in str(card.message)
    assert_whole(desk.database)


async def test_a_delivery_without_a_job_does_not_stay_in_the_way(desk: Desk) -> None:
    done = await desk.world.upload("handbook", "done.txt", TEXT)
    desk.rows("UPDATE jobs SET status = 'done', delivery = NULL WHERE id = %s", done.job_id)
    receipt = await desk.world.upload("handbook", "note.txt", f"{TEXT} Really.")
    assert await desk.take() is None
    lease = await desk.take()
    assert lease is not None
    assert lease.id == receipt.job_id


# --- in a fair order ----------------------------------------------------------------------------------------------


async def test_small_files_come_before_a_huge_one_and_a_load_takes_turns(desk: Desk) -> None:
    world = desk.world
    await world.collection("news")
    huge = await world.upload("handbook", "huge.txt", TEXT * 50_000)
    load = [await world.upload("handbook", f"note-{n}.txt", TEXT * (10_000 + n)) for n in range(3)]
    other = await world.upload("news", "news.txt", TEXT)
    order = []
    while (lease := await desk.take()) is not None:
        order.append(lease.id)
    assert [id_ for id_ in order if id_ != other.job_id] == [*(one.job_id for one in load), huge.job_id]
    assert order.index(other.job_id) < order.index(load[1].job_id), "another collection's turn comes in between"


async def test_nothing_is_overtaken_for_longer_than_the_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE_SECONDS", 3.0)
    for number in range(8):
        await desk.world.upload("handbook", f"note-{number}.txt", f"{TEXT} ({number})")
    late = await desk.world.upload("handbook", "late.txt", TEXT * 10_000)
    query = """SELECT p.priority, j.created_at FROM procrastinate.procrastinate_jobs p JOIN jobs j ON j.delivery = p.id
               WHERE j.id = %s"""
    ((priority, at),) = desk.rows(query, late.job_id)
    bound = timedelta(seconds=jobs.PATIENCE_SECONDS)
    assert priority == delivery.priority(at + bound), "17 seconds of work are ahead of it, and it waits for three"


async def test_progress_is_seen_while_a_file_is_read_and_while_it_is_embedded(
    desk: Desk, parsing: Parsing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "BATCH", 1)
    told: list[float] = []
    renew = leases.renew

    async def heard(transaction: Transaction, lease: Lease, progress: float) -> bool:
        told.append(progress)
        return await renew(transaction, lease, progress)

    monkeypatch.setattr(leases, "renew", heard)
    paragraphs = "\n\n".join(f"# Part {n}\n\n{TEXT}" for n in range(4))
    receipt = await desk.world.upload("handbook", "parts.md", paragraphs)
    work = asyncio.ensure_future(desk.world.services.worker.run_one())

    async def is_seen() -> bool:
        return (await desk.card(receipt.job_id)).progress > 0

    await until_async(is_seen, "progress of a parse")
    parsing.go_on.set()
    assert await work
    assert told == sorted(told)
    assert len([share for share in told if worker.PARSED <= share < worker.EMBEDDED]) >= 4
    assert (await desk.card(receipt.job_id)).progress == 1


# --- put back -----------------------------------------------------------------------------------------------------


class Absent(Embedder):
    """An embedding service that does not answer."""

    def __init__(self) -> None:
        """Nothing is loaded."""

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        raise EmbedderUnavailable


async def test_while_the_embedder_is_away_jobs_wait_longer_and_longer(desk: Desk) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    away = desk.work(embedder=Absent())
    pauses = []
    for _ in range(4):
        assert await away.run_one()
        card = await desk.card(receipt.job_id)
        assert (card.status, card.code) == ("queued", "embedder_unavailable")
        assert not await away.run_one(), "not before the pause is over"
        ((pause,),) = desk.rows("SELECT extract(epoch FROM scheduled_at - now()) FROM procrastinate.procrastinate_jobs")
        pauses.append(float(pause))
        desk.time_passes()
    assert all(later > 1.5 * earlier for earlier, later in pairwise(pauses)), pauses
    assert await desk.world.services.worker.run_one()
    card = await desk.card(receipt.job_id)
    assert (card.status, card.code, card.message) == ("done", None, None)
    assert desk.rows("SELECT deaths FROM jobs") == [(0,)]


async def test_what_is_away_for_ever_makes_a_dead_letter(desk: Desk) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    away = desk.work(embedder=Absent())
    for _ in range(leases.TRIES_MAX):
        assert await away.run_one()
        desk.time_passes()
    card = await desk.card(receipt.job_id)
    assert (card.status, card.code) == ("failed", "embedder_unavailable")
    await desk.change(jobs.retry, receipt.job_id)
    assert await desk.world.services.worker.run_one()
    assert (await desk.card(receipt.job_id)).status == "done"
    assert_whole(desk.database)


TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'stacks_login'"


async def test_a_database_that_goes_away_while_a_file_is_read_stops_nothing(desk: Desk, parsing: Parsing) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    work = asyncio.ensure_future(desk.world.services.worker.run_one())
    await parsing.has_begun()
    desk.rows(TERMINATE)
    parsing.go_on.set()
    assert await work
    assert (await desk.card(receipt.job_id)).status == "done"
    assert desk.rows("SELECT attempts, deaths FROM jobs") == [(1, 0)]


async def test_a_database_that_goes_away_while_a_job_is_written_puts_it_back(desk: Desk) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    with desk.database.superuser() as connection, connection.transaction():
        connection.execute("LOCK TABLE chunk_index IN SHARE MODE")
        work = asyncio.ensure_future(desk.world.services.worker.run_one())
        held = "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE usename = 'stacks_login' AND NOT granted"

        async def is_held() -> bool:
            assert not work.done(), await work
            return bool(desk.rows(held))

        await until_async(is_held, "a write that waits")
        desk.rows(TERMINATE)
        assert await work
    card = await desk.card(receipt.job_id)
    assert (card.status, card.code) == ("queued", "index_unavailable")
    assert_whole(desk.database)
    desk.time_passes()
    assert await desk.world.services.worker.run_one()
    assert (await desk.card(receipt.job_id)).status == "done"
    assert_whole(desk.database)


async def test_a_worker_that_is_stopped_gives_its_job_back_at_once(desk: Desk, parsing: Parsing) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    stop = asyncio.Event()
    working = asyncio.ensure_future(crew.work(desk.world.services.worker, stop))
    await parsing.has_begun()
    services = desk.world.services
    counted = partial(jobs.counts, authority=services.authority, by=OWNER)
    assert (await services.database.read(counted)).workers == 1
    stop.set()
    await working
    assert parsing.given_up[0].is_set()
    assert desk.rows("SELECT status, attempts, deaths FROM jobs") == [("queued", 1, 0)]
    assert (await services.database.read(counted)).workers == 0
    parsing.go_on.set()
    assert await services.worker.run_one(receipt.job_id)
    assert_whole(desk.database)


# --- ended, and tried again ---------------------------------------------------------------------------------------


async def test_a_job_that_waits_is_cancelled_and_tried_again(desk: Desk) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    assert (await desk.change(jobs.cancel, receipt.job_id)).status == "cancelled"
    assert not await desk.world.services.worker.run_one()
    assert_whole(desk.database)
    with pytest.raises(Conflict):
        await desk.change(jobs.cancel, receipt.job_id)
    assert (await desk.change(jobs.retry, receipt.job_id)).status == "queued"
    assert_whole(desk.database)
    with pytest.raises(Conflict):
        await desk.change(jobs.retry, receipt.job_id)
    assert await desk.world.services.worker.run_one()
    assert (await desk.card(receipt.job_id)).status == "done"
    assert (await desk.world.publish("handbook")).documents == 1


async def test_a_job_in_hand_is_cancelled_and_its_worker_writes_nothing(desk: Desk, parsing: Parsing) -> None:
    receipt = await desk.world.upload("handbook", "note.txt", TEXT)
    work = asyncio.ensure_future(desk.world.services.worker.run_one())
    await parsing.has_begun()
    assert (await desk.change(jobs.cancel, receipt.job_id)).status == "cancelled"
    assert await work
    assert parsing.given_up[0].is_set()
    assert (await desk.card(receipt.job_id)).status == "cancelled"
    assert desk.rows("SELECT count(*) FROM chunks") == [(0,)]
    assert_whole(desk.database)
    assert (await desk.world.publish("handbook")).dedup_hit


async def test_a_cancel_and_a_worker_that_reaches_for_the_same_job(desk: Desk) -> None:
    """Whoever is first, neither waits for the other for ever, and the job ends as one of them says."""
    for number in range(10):
        receipt = await desk.world.upload("handbook", f"note-{number}.txt", f"{TEXT} ({number})")
        cancelled, worked = await asyncio.gather(
            desk.change(jobs.cancel, receipt.job_id),
            desk.world.services.worker.run_one(),
            return_exceptions=True,
        )
        assert isinstance(cancelled, JobCard | Conflict)
        assert worked in (True, False)
        assert (await desk.card(receipt.job_id)).status == ("done" if isinstance(cancelled, Conflict) else "cancelled")
    assert_whole(desk.database)


async def test_what_failed_is_listed_with_its_reason_and_its_bytes_are_kept_for_as_long_as_they_serve(
    desk: Desk,
) -> None:
    world, services = desk.world, desk.world.services
    broken = b"%PDF-1.7 and nothing else"
    receipt = await world.upload("handbook", "broken.pdf", broken)
    await world.upload("handbook", "note.txt", TEXT)
    while await services.worker.run_one():
        pass
    listed = await services.database.read(
        lambda snapshot: jobs.listed(
            snapshot, services.authority, services.printer, OWNER, "handbook", status="failed", limit=10
        )
    )
    assert [(one.file_name, one.code, one.version, one.attempts) for one in listed] == [
        ("broken.pdf", "unreadable", 1, 1)
    ]
    assert listed[0].message
    kept = (
        "SELECT count(*) FROM originals o JOIN document_versions v USING (document_id, version) WHERE state = 'failed'"
    )
    assert desk.rows(kept) == [(1,)]
    await desk.change(jobs.retry, receipt.job_id)
    assert await services.worker.run_one()
    assert (await desk.card(receipt.job_id)).code == "unreadable"
    again = await world.upload("handbook", "broken.pdf", b"%PDF-1.7 and still nothing else")
    assert desk.rows(kept) == [(0,)], "what is newer replaces it"
    with pytest.raises(Conflict):
        await desk.change(jobs.retry, receipt.job_id)
    assert await services.worker.run_one()
    assert desk.rows(kept) == [(1,)]
    await world.remove(receipt.document_id)
    assert desk.rows(kept) == [(0,)]
    with pytest.raises(Conflict):
        await desk.change(jobs.retry, again.job_id)
    assert_whole(desk.database)


async def test_only_who_may_ingest_ends_a_job_and_a_retry_works_under_its_own_rights(desk: Desk) -> None:
    world = desk.world
    grant = await world.grant("ingest", "handbook", principal="paula")
    await world.grant("search", "handbook", principal="reader")
    receipt = await world.upload("handbook", "note.txt", TEXT, by=local("paula"))
    for change in (jobs.cancel, jobs.retry):
        with pytest.raises(Denied):
            await desk.change(change, receipt.job_id, local("reader"))
        with pytest.raises(NotFound):
            await desk.change(change, receipt.job_id, local("stranger"))
    await world.revoke(grant.id)
    assert await world.services.worker.run_one()
    card = await desk.card(receipt.job_id)
    assert card.status == "failed"
    with pytest.raises(NotFound):
        await desk.change(jobs.retry, receipt.job_id, local("paula"))
    await desk.change(jobs.retry, receipt.job_id)
    assert await world.services.worker.run_one()
    assert (await desk.card(receipt.job_id)).status == "done"
    assert_whole(desk.database)
