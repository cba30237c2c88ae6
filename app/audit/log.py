"""The call log: one row a call, durable before the answer leaves.

When Postgres cannot take the row, it goes to a spool on disk (fsync'd) and the call fails; the spool is written back
when the database takes a row again. No row carries a fragment, a secret or a query's words.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy import text
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from app.audit.spool import Spool
from app.db.session import Database, Transaction
from app.domain.calls import Call
from app.errors import IndexUnavailable, InternalError, StacksError

T = TypeVar("T")
log = structlog.get_logger()

_SUCCESSES = ("ok", "empty")

_INSERT = text("""
    INSERT INTO calls (call_id, at, principal, actor, entrypoint, operation, collection, outcome, corpus_versions,
                       policy_version, document_ids, chunk_ids, latency_ms, query_digest)
    VALUES (:call_id, :at, :principal, :actor, :entrypoint, :operation, :collection, :outcome, :corpus_versions,
            :policy_version, CAST(:document_ids AS uuid[]), CAST(:chunk_ids AS uuid[]), :latency_ms, :query_digest)
    ON CONFLICT (call_id) DO NOTHING
""")


class CallLog:
    """Writes calls down. `serve` is the one way a call is carried out on every entrypoint."""

    def __init__(self, database: Database, spool: Spool, digest_key: str) -> None:
        self._database = database
        self._spool = spool
        self._key = digest_key.encode()
        self._writing_back: asyncio.Task[None] | None = None

    def digest(self, query: str) -> str:
        """A keyed digest, by which equal queries can be found without their words being kept."""
        return hmac.new(self._key, query.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()

    async def serve(self, call: Call, work: Callable[[], Awaitable[T]]) -> T:
        """Carry out `work` and write `call` down, whatever came of it, before the result is handed on.

        Raises what `work` raises; anything that is not one of our errors becomes `InternalError`, and its particulars
        go to the operator's log alone. If the row cannot be written, the call fails with what stood in the way.
        """
        try:
            result = await work()
        except asyncio.CancelledError:
            call.outcome = "cancelled"
            with suppress(StacksError):  # the row waits in the spool then, or the alarm has been sounded
                await asyncio.shield(asyncio.ensure_future(self.record(call)))
            raise
        except StacksError as error:
            await self._failed(call, error, error)
            raise
        except Exception as bug:  # the outermost boundary: a bug is logged, and does not speak
            unspoken = InternalError()
            await self._failed(call, unspoken, bug)
            raise unspoken from bug
        await self.record(call)
        return result

    async def read(self, call: Call, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """`serve` a call that only reads: `work` runs in one snapshot."""

        async def carried_out() -> T:
            result = await self._database.read(partial(_noting_policy, call, work))
            call.outcome = "ok"
            return result

        return await self.serve(call, carried_out)

    async def rehearse(self, call: Call, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """`serve` a call that only tries something out: what `work` does is taken back."""

        async def carried_out() -> T:
            result = await self._database.rehearse(partial(_noting_policy, call, work))
            call.outcome = "ok"
            return result

        return await self.serve(call, carried_out)

    async def change(
        self,
        call: Call,
        work: Callable[[Transaction], Awaitable[T]],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
        deadline: float | None = None,
    ) -> T:
        """`serve` a call that changes something: the change and its row are committed together.

        `before` is what belongs to the call and must not hold a transaction open: waiting, fetching. `deadline`
        (seconds) is for changes that may take longer than a call otherwise may.
        """

        async def changed(transaction: Transaction) -> T:
            result = await _noting_policy(call, work, transaction)
            call.outcome = "ok"
            await self._insert(transaction, _row(call))
            return result

        async def carried_out() -> T:
            if before is not None:
                await before()
            result = await self._database.write(changed, deadline=deadline)
            call.recorded = True
            return result

        return await self.serve(call, carried_out)

    async def _failed(self, call: Call, error: StacksError, cause: Exception) -> None:
        call.outcome = error.code
        error.call_id = call.call_id
        self._tell(call, cause)
        if isinstance(error, IndexUnavailable):  # the caller has waited for the database once, and that is enough
            self._keep(_row(call))
        else:
            await self.record(call)

    def _tell(self, call: Call, error: Exception) -> None:
        """Tell the operator about faults (never about ordinary refusals), by type and place, not by value."""
        if isinstance(error, StacksError) and error.http_status < 500:
            return
        causes = [type(cause).__name__ for cause in (error, error.__cause__) if cause is not None]
        log.error("call failed", call_id=str(call.call_id), operation=call.operation, causes=causes, at=_place(error))

    async def record(self, call: Call) -> None:
        """Write `call` down in a transaction of its own, unless the change it made has taken it along already.

        Raises what stood in the way (`IndexUnavailable`, `Timeout`), or `InternalError`; the row waits in the spool.
        """
        if call.recorded:
            return
        row = _row(call)
        try:
            await self._database.write(lambda transaction: self._insert(transaction, row))
        except StacksError as fault:
            self._keep_failed(row, fault)
            raise
        except SQLAlchemyError as refusal:  # it answers, and does not take the row: a right is missing, a disk is full
            unspoken = InternalError()
            self._keep_failed(row, unspoken)
            self._tell(call, refusal)
            raise unspoken from refusal
        call.recorded = True
        if self._writing_back is None or self._writing_back.done():
            self._writing_back = asyncio.ensure_future(self._write_back())

    def _keep_failed(self, row: dict[str, Any], fault: StacksError) -> None:
        fault.call_id = row["call_id"]
        self._keep({**row, "outcome": fault.code if row["outcome"] in _SUCCESSES else row["outcome"]})

    def _keep(self, row: dict[str, Any]) -> None:
        """Let a row wait in the spool. Raises `InternalError`, with an alarm, when the disk cannot take it either."""
        try:
            self._spool.append(row)
        except OSError as fault:
            log.critical("ALARM: a call can be written down nowhere", call_id=str(row["call_id"]), errno=fault.errno)
            unspoken = InternalError()
            unspoken.call_id = row["call_id"]
            raise unspoken from fault

    async def _write_back(self) -> None:
        """Write down what waits; what cannot be written waits on. Nobody's call waits for it."""
        try:
            for claimed in self._spool.claimed():
                for row in self._spool.rows(claimed):
                    await self._write_row_back(row, claimed)
                claimed.unlink(missing_ok=True)
        except (StacksError, SQLAlchemyError, OSError) as fault:
            log.warning("the call spool waits", cause=type(fault).__name__)

    async def _write_row_back(self, row: dict[str, Any], claimed: Path) -> None:
        values = {**row, "at": datetime.fromisoformat(row["at"])}
        try:
            await self._database.write(partial(self._insert, row=values))
        except (DataError, IntegrityError):  # this row alone is at fault: the others must not wait for it for ever
            log.critical("ALARM: a row of the call spool is refused by the database", call_id=row["call_id"])
            self._spool.refuse(row, claimed)

    @staticmethod
    async def _insert(transaction: Transaction, row: dict[str, Any]) -> None:
        await transaction.connection.execute(_INSERT, row)


async def _noting_policy(call: Call, work: Callable[[Transaction], Awaitable[T]], transaction: Transaction) -> T:
    call.policy_version = transaction.policy_version
    return await work(transaction)


def _row(call: Call) -> dict[str, Any]:
    principal = call.principal
    return {
        "call_id": call.call_id,
        "at": call.started_at,
        "principal": principal.key if principal else None,
        "actor": principal.actor.key if principal and principal.actor else None,
        "entrypoint": call.entrypoint.value,
        "operation": call.operation,
        "collection": None if call.collection is None else _storable(call.collection),
        "outcome": call.outcome,
        "corpus_versions": list(call.corpus_versions),
        "policy_version": call.policy_version,
        "document_ids": list(call.document_ids),
        "chunk_ids": list(call.chunk_ids),
        "latency_ms": call.latency_ms,
        "query_digest": call.query_digest,
    }


def _storable(name: str) -> str:
    """A name as a client sent it may hold what Postgres takes in no text: NUL, halves of surrogate pairs."""
    return name.encode(errors="backslashreplace").decode().replace("\0", "\\x00")


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
