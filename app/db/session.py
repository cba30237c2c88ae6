"""Transactions: one snapshot for a reader, one commit for a writer, and faults told by their right names."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.engine import refuse_unsafe_login
from app.errors import IndexUnavailable, StacksError, Timeout

T = TypeVar("T")

_STATE = text("""
    SELECT version, now() AS at, extract(epoch FROM now())::text AS transaction, pg_backend_pid() AS backend
    FROM policy_state
""")


_PATIENCE = text("SELECT set_config('statement_timeout', :milliseconds, true)")


@dataclass(frozen=True, slots=True)
class Transaction:
    """One open transaction, with what a compiled scope and a ticket are bound to.

    `snapshot` says that it reads one committed state throughout: only then does `policy_version` tell which rules it
    sees. A transaction that writes may see rules of its own that will never be committed. `patience` is how many
    seconds it may take.
    """

    connection: AsyncConnection
    policy_version: int
    at: datetime
    epoch: str
    backend: int
    snapshot: bool = False
    patience: float = 0.0


class _TakenBack(StacksError):
    """Ends a rehearsal, so that its transaction is rolled back."""


class Database:
    """The service's way to Postgres. Every use goes through `within`, so none outlives its deadline."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        check_tickets: Callable[[Transaction], Awaitable[None]],
        deadline_seconds: float = 5.0,
    ) -> None:
        """`check_tickets` raises `ConfigurationError` where the database would not take our tickets."""
        self._engine = engine
        self._check_tickets = check_tickets
        self._deadline = deadline_seconds
        self._abandoned: set[asyncio.Future[Any]] = set()

    async def check_login(self) -> None:
        """Raise `ConfigurationError` unless row-level security binds the login, and takes the tickets made here."""
        await self.within(self._check_login)

    async def _check_login(self) -> None:
        async with self._engine.connect() as connection:
            await refuse_unsafe_login(connection)
        await self._run(self._check_tickets, "REPEATABLE READ", read_only=True)

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one REPEATABLE READ, READ ONLY transaction.

        Raises `IndexUnavailable` when Postgres cannot answer in time, `Timeout` when it stopped a statement.
        """
        return await self.within(lambda: self._run(work, "REPEATABLE READ", read_only=True))

    async def write(self, work: Callable[[Transaction], Awaitable[T]], *, deadline: float | None = None) -> T:
        """Run `work` in one READ COMMITTED transaction, committed when it returns. Raises as `read` does.

        `deadline` (seconds) is for work that is known to take longer than a call may; its statements may too.
        """

        async def patiently(transaction: Transaction) -> T:
            if deadline is not None:
                await transaction.connection.execute(_PATIENCE, {"milliseconds": str(int(deadline * 1000))})
            return await work(transaction)

        return await self.within(
            lambda: self._run(patiently, "READ COMMITTED", read_only=False, patience=deadline), deadline=deadline
        )

    async def rehearse(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` as `write` does, and take everything back: what would be, if this were done? Raises as `read`."""

        async def rehearsed() -> T:
            results: list[T] = []
            with suppress(_TakenBack):
                async with self._transaction("READ COMMITTED", read_only=False) as transaction:
                    results.append(await work(transaction))
                    raise _TakenBack
            return results[0]

        return await self.within(rehearsed)

    async def _run(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        isolation: str,
        *,
        read_only: bool,
        patience: float | None = None,
    ) -> T:
        async with self._transaction(isolation, read_only=read_only, patience=patience) as transaction:
            return await work(transaction)

    @asynccontextmanager
    async def _transaction(
        self, isolation: str, *, read_only: bool, patience: float | None = None
    ) -> AsyncIterator[Transaction]:
        async with self._engine.connect() as connection:
            await connection.execution_options(isolation_level=isolation, postgresql_readonly=read_only)
            async with connection.begin():
                state = (await connection.execute(_STATE)).one()
                yield Transaction(
                    connection,
                    state.version,
                    state.at,
                    state.transaction,
                    state.backend,
                    snapshot=read_only,
                    patience=patience or self._deadline,
                )

    async def within(self, work: Callable[[], Awaitable[T]], *, deadline: float | None = None) -> T:
        """Await `work` for at most `deadline` seconds (the database's own by default), then let go of it.

        A stopped Postgres does not answer a cancel request either: waiting for the clean-up would hold the caller
        past its deadline. So the task is cancelled and left to end by itself; its connection goes back or is closed.
        """
        task = asyncio.ensure_future(_named(work))
        try:
            done, _ = await asyncio.wait({task}, timeout=deadline or self._deadline)
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        if not done:
            self._abandon(task)
            raise IndexUnavailable
        return task.result()

    def _abandon(self, task: "asyncio.Future[T]") -> None:
        task.cancel()
        self._abandoned.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Future[T]") -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen: nobody waits for it any more

    async def close(self) -> None:
        """Close the pool."""
        await self._engine.dispose()


async def _named(work: Callable[[], Awaitable[T]]) -> T:
    """Await `work`, turning the driver's faults into ours. What it is about stays out of the message."""
    try:
        return await work()
    except (PoolTimeout, ConnectionError) as fault:
        raise IndexUnavailable from fault
    except DBAPIError as fault:
        if isinstance(fault.orig, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
            raise Timeout from fault
        if fault.connection_invalidated or isinstance(fault, OperationalError | InterfaceError):
            raise IndexUnavailable from fault
        raise
