"""One job from lease to end: read the original, parse, chunk, embed, write. A fault fails this job alone."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import structlog
from sqlalchemy import text

from app.analysis.embedder import Embedder
from app.db.session import Database, Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.documents import Chunk, ExtractedText
from app.errors import EmbedderUnavailable, EmptyDocument, IngestError, StacksError
from app.ingest import delivery, index, leases
from app.ingest.chunk import chunks
from app.ingest.holding import AWAY, Holding, LeaseLost, PagesRead, creeping, steady
from app.ingest.index import Indexed, Model
from app.ingest.leases import Lease, Withheld
from app.ingest.parse.process import ParserLimits, parse_isolated

log = structlog.get_logger()

BATCH = 16  # chunks between two notes of progress
WRITE_SECONDS = 300.0
PARSED, EMBEDDED = 0.3, 0.99  # shares of a job that are done by then

_ORIGINAL = text("""
    SELECT o.content, v.file_name FROM originals o JOIN document_versions v USING (document_id, version)
    WHERE o.document_id = :document AND o.version = :version
""")
_FAIL = text("UPDATE document_versions SET state = 'failed' WHERE document_id = :document AND version = :version")


@dataclass(frozen=True, slots=True)
class Worker:
    """Takes jobs and carries them out, one at a time."""

    database: Database
    printer: TicketPrinter
    embedder: Embedder
    limits: ParserLimits
    lease_seconds: float = leases.LEASE_SECONDS

    async def run_one(self, only: UUID | None = None, worker: int | None = None) -> bool:
        """Take one job (or `only` that one) to its end; False when there was none to take.

        A transient fault gives the job back, to be tried again later; so does the cancelling of this call, at once.
        Raises `IndexUnavailable` or `Timeout` when no job could be asked for.
        """
        take = partial(leases.take, worker=worker, only=only, seconds=self.lease_seconds)
        try:
            lease = await self.database.write(take)
        except Withheld:
            return False
        if lease is None:
            return False
        holding = Holding(self.database, lease)
        try:
            await self._try(holding)
        except LeaseLost:
            log.warning("lease lost", job=str(lease.id))
        except asyncio.CancelledError:
            with suppress(StacksError):  # else by its lease
                await asyncio.shield(self.database.write(partial(leases.put_back, lease=lease)))
            raise
        finally:
            holding.given_up.set()
        return True

    async def _try(self, holding: Holding) -> None:
        lease = holding.lease
        try:
            if lease.deaths >= leases.DEATHS_MAX:
                raise IngestError("Its workers died over it again and again.")
            await self._carry_out(holding)
        except IngestError as failure:
            await self._insist(holding, partial(self._fail, lease=lease, code=failure.failure, message=failure.message))
        except (*AWAY, EmbedderUnavailable) as fault:
            log.warning("job put back", job=str(lease.id), code=fault.code, tries=lease.tries)
            give_up = lease.tries + 1 >= leases.TRIES_MAX
            what = partial(
                self._fail if give_up else partial(leases.put_back, pause=delivery.backoff(lease.tries)),
                lease=lease,
                code=fault.code,
                message=fault.message,
            )
            await self._insist(holding, what)

    async def _carry_out(self, holding: Holding) -> None:
        lease = holding.lease
        content, file_name = await self.database.read(lambda transaction: self._original(transaction, lease))
        pages = PagesRead(PARSED, creeping(PARSED, lease.expected))
        parse = partial(
            parse_isolated, content, file_name, limits=self.limits, given_up=holding.given_up, read=pages.tell
        )
        extracted = await holding.during(parse, pages)
        parts = await holding.during(partial(self._chunks, extracted), steady(PARSED))
        if not parts:
            raise EmptyDocument
        indexed: list[Indexed] = []
        for start in range(0, len(parts), BATCH):
            progress = PARSED + (EMBEDDED - PARSED) * start / len(parts)
            await holding.sign_of_life(progress)
            batch = partial(self._embed, parts[start : start + BATCH])
            indexed += await holding.during(batch, steady(progress))
        await holding.sign_of_life(EMBEDDED)
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

    async def _write(
        self, transaction: Transaction, lease: Lease, extracted: ExtractedText, indexed: list[Indexed]
    ) -> None:
        if not await leases.end(transaction, lease, "done"):
            raise LeaseLost
        await self.printer.present(transaction, lease.principal, Action.INGEST)
        model = Model(self.embedder.name, self.embedder.revision, self.embedder.dimension)
        if not await index.write(transaction, lease.document_id, lease.version, extracted, indexed, model):
            raise IngestError("Who uploaded it may not ingest here any more.")

    async def _fail(self, transaction: Transaction, lease: Lease, code: str, message: str) -> None:
        """The original stays, so that the job can be tried again by hand."""
        if not await leases.end(transaction, lease, "failed", code, message):
            raise LeaseLost
        await self.printer.present(transaction, lease.principal, Action.INGEST)
        await transaction.connection.execute(_FAIL, {"document": lease.document_id, "version": lease.version})

    async def _insist(self, holding: Holding, what: Callable[[Transaction], Awaitable[object]]) -> None:
        """Say what became of a job, for as long as its lease lasts: after that the job counts as left behind."""
        for _ in range(math.ceil(holding.lease.seconds)):
            try:
                await self.database.write(what)
                return
            except AWAY:
                await asyncio.sleep(1)
