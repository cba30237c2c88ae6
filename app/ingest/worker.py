"""One job from lease to end: read the original, parse, chunk, embed, write. A fault fails this job alone."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import text

from app.analysis.embedder import Embedder
from app.db.session import Database, Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.documents import Chunk, ExtractedText
from app.errors import EmptyDocument, IngestError, StacksError
from app.ingest import index, jobs
from app.ingest.chunk import chunks
from app.ingest.index import Indexed, Model
from app.ingest.jobs import Lease
from app.ingest.parse.process import ParserLimits, parse_isolated

T = TypeVar("T")
log = structlog.get_logger()

BATCH = 16  # chunks between two notes of progress
SIGNS_OF_LIFE = 4  # at least, in the time that a lease lasts
WRITE_SECONDS = 300.0
IDLE_SECONDS = 0.5

_ORIGINAL = text("""
    SELECT o.content, v.file_name FROM originals o JOIN document_versions v USING (document_id, version)
    WHERE o.document_id = :document AND o.version = :version
""")
_FAIL = text("UPDATE document_versions SET state = 'failed' WHERE document_id = :document AND version = :version")
_DROP = text("DELETE FROM originals WHERE document_id = :document AND version = :version")


class LeaseLost(IngestError):
    """Another worker has taken the job over; what was done here is dropped."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Takes jobs and carries them out, one at a time."""

    database: Database
    printer: TicketPrinter
    embedder: Embedder
    limits: ParserLimits
    lease_seconds: float = jobs.LEASE_SECONDS

    async def run(self, stop: asyncio.Event) -> None:
        """Take jobs until `stop` is set. While the database is away, wait for it."""
        while not stop.is_set():
            try:
                busy = await self.run_one()
            except StacksError as fault:
                log.warning("worker waits", code=fault.code)
                busy = False
            if not busy:
                await _pause(stop, IDLE_SECONDS)

    async def run_one(self, only: UUID | None = None) -> bool:
        """Take one job (or `only` that one) to its end; False when there was none to take.

        Raises `IndexUnavailable` or `Timeout`; the job then goes back by its lease.
        """
        lease = await self.database.write(partial(jobs.take, only=only, seconds=self.lease_seconds))
        if lease is None:
            return False
        try:
            if lease.attempts > jobs.ATTEMPTS_MAX:
                raise IngestError("Its workers died over it again and again.")
            await self._carry_out(lease)
        except LeaseLost:
            log.warning("lease lost", job=str(lease.id))
        except IngestError as failure:
            await self.database.write(partial(self._fail, lease=lease, failure=failure))
        return True

    async def _carry_out(self, lease: Lease) -> None:
        content, file_name = await self.database.read(lambda transaction: self._original(transaction, lease))
        parse = partial(parse_isolated, content, file_name, limits=self.limits)
        extracted = await self._alive(lease, 0.0, parse)
        parts = await self._alive(lease, 0.0, partial(self._chunks, extracted))
        if not parts:
            raise EmptyDocument
        indexed: list[Indexed] = []
        for start in range(0, len(parts), BATCH):
            progress = start / len(parts)
            await self._sign_of_life(lease, progress)
            indexed += await self._alive(lease, progress, partial(self._embed, parts[start : start + BATCH]))
        await self._sign_of_life(lease, 0.99)
        await self.database.write(
            lambda transaction: self._write(transaction, lease, extracted, indexed), deadline=WRITE_SECONDS
        )

    async def _original(self, transaction: Transaction, lease: Lease) -> tuple[bytes, str]:
        await self.printer.present(transaction, lease.principal, Action.INGEST)
        values = {"document": lease.document_id, "version": lease.version}
        row = (await transaction.connection.execute(_ORIGINAL, values)).one_or_none()
        if row is None:
            raise IngestError("Who uploaded it may not ingest here any more.")
        return bytes(row.content), row.file_name

    def _chunks(self, extracted: ExtractedText) -> list[Chunk]:
        return list(chunks(extracted, self.embedder.token_spans))

    def _embed(self, parts: list[Chunk]) -> list[Indexed]:
        return [found for part in parts if (found := self._indexed(part)) is not None]

    def _indexed(self, part: Chunk) -> Indexed | None:
        """A chunk of nothing but invisible characters has no vector, and nobody could look for it."""
        try:
            return Indexed(part, self.embedder.passage(part.text))
        except ValueError:
            return None

    async def _alive(self, lease: Lease, progress: float, work: Callable[[], T]) -> T:
        """Do work that blocks in a thread, and keep the lease meanwhile, however long it takes."""
        task = asyncio.ensure_future(asyncio.to_thread(work))
        task.add_done_callback(_seen)
        while not (await asyncio.wait({task}, timeout=lease.seconds / SIGNS_OF_LIFE))[0]:
            await self._sign_of_life(lease, progress)
        return task.result()

    async def _sign_of_life(self, lease: Lease, progress: float) -> None:
        if not await self.database.write(partial(jobs.renew, lease=lease, progress=progress)):
            raise LeaseLost

    async def _write(
        self, transaction: Transaction, lease: Lease, extracted: ExtractedText, indexed: list[Indexed]
    ) -> None:
        if not await jobs.end(transaction, lease, "done"):
            raise LeaseLost
        await self.printer.present(transaction, lease.principal, Action.INGEST)
        model = Model(self.embedder.name, self.embedder.revision, self.embedder.dimension)
        if not await index.write(transaction, lease.document_id, lease.version, extracted, indexed, model):
            raise IngestError("Who uploaded it may not ingest here any more.")

    async def _fail(self, transaction: Transaction, lease: Lease, failure: IngestError) -> None:
        await self.printer.present(transaction, lease.principal, Action.INGEST)
        values = {"document": lease.document_id, "version": lease.version}
        await transaction.connection.execute(_FAIL, values)
        await transaction.connection.execute(_DROP, values)
        await jobs.end(transaction, lease, "failed", failure.failure, failure.message)


def _seen(task: "asyncio.Future[T]") -> None:
    """Nobody waits for work whose lease was lost: its failure is not to be told as one that was forgotten."""
    if not task.cancelled():
        task.exception()


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
