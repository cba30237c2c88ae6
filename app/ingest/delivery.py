"""Delivery of jobs by procrastinate, in transactions of ours: what is queued, taken or ended here is so exactly if the
card that says it is written.

procrastinate's tables know no row-level security, so they are told an id of ours and nothing else, and forget it when
the job has ended. Each job is a queue of its own: a worker takes from all of them, a command its own.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.sql import queries
from psycopg.types.json import Jsonb
from sqlalchemy import text

from app.db.session import Transaction

TASK = "ingest"
BACKOFF_MAX_SECONDS = 300
WORKER_SECONDS = 20  # a worker that has not been heard of for longer is taken for gone
FORGET_SECONDS = 86_400  # long enough for a machine that slept: a job can't be given to a worker without a row

# Its queries name no schema. Local to the transaction, as everything is that a pooled connection is told.
_PATH = text("SELECT set_config('search_path', 'public, procrastinate', true)")
_WORKERS = text("""
    SELECT count(*) FROM procrastinate.procrastinate_workers
    WHERE last_heartbeat > now() - make_interval(secs => :seconds)
""")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A job as it was brought: its number in procrastinate's table, our id, and how often it was put back before."""

    number: int
    job: UUID
    tries: int


class _Within(BaseAsyncConnector):
    """procrastinate's queries on the connection of one transaction, under its deadline and with its faults."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def execute_query_async(self, query: LiteralString, **arguments: Any) -> None:
        await self.execute_query_all_async(query, **arguments)

    async def execute_query_one_async(self, query: LiteralString, **arguments: Any) -> dict[str, Any]:
        return (await self.execute_query_all_async(query, **arguments))[0]

    async def execute_query_all_async(self, query: LiteralString, **arguments: Any) -> list[dict[str, Any]]:
        adapted = {name: _adapted(value) for name, value in arguments.items()}
        rows = await self._transaction.connection.exec_driver_sql(query, adapted)
        return [dict(row) for row in rows.mappings()]


def _adapted(value: Any) -> Any:
    """Rows and lists of rows stay what they are; JSON is marked as such for the driver."""
    if isinstance(value, dict):
        return Jsonb(value)
    if isinstance(value, tuple):
        return tuple(map(_adapted, value))
    return list(map(_adapted, value)) if isinstance(value, list) else value


async def _queue(transaction: Transaction) -> JobManager:
    await transaction.connection.execute(_PATH)
    return JobManager(_Within(transaction))


async def send(transaction: Transaction, job: UUID, priority: int) -> int:
    """Queue a job, to be delivered before those of a lower priority; the number of its delivery."""
    name = str(job)
    wanted = Job(
        queue=name, task_name=TASK, priority=priority, lock=None, queueing_lock=name, task_kwargs={"job": name}
    )
    sent = await (await _queue(transaction)).defer_job_async(wanted)
    return int(sent.id or 0)


async def receive(transaction: Transaction, worker: int | None, only: UUID | None = None) -> Delivery | None:
    """The next job to be done, or `only` that one, which nobody else is given meanwhile; None when there is none.

    A command that does its own job is no `worker`, which `JobManager.fetch_job` asks for.
    """
    queues = None if only is None else [str(only)]
    connector = (await _queue(transaction)).connector
    row = await connector.execute_query_one_async(queries["fetch_job"], queues=queues, worker_id=worker)
    return None if row["id"] is None else Delivery(row["id"], UUID(row["args"]["job"]), row["attempts"])


async def put_back(transaction: Transaction, number: int, seconds: float) -> None:
    """A job that was given out is to be delivered again, not before `seconds` have passed."""
    at = transaction.at + timedelta(seconds=seconds)
    await (await _queue(transaction)).retry_job_by_id_async(number, retry_at=at)


async def drop(transaction: Transaction, number: int) -> None:
    """A job has ended, however it did, whether it was given out or waited: its delivery is forgotten."""
    await (await _queue(transaction)).finish_job_by_id_async(number, Status.ABORTED, delete_job=True)


async def enlist(transaction: Transaction) -> int:
    """A worker begins; its number."""
    return await (await _queue(transaction)).register_worker()


async def report(transaction: Transaction, worker: int) -> None:
    """A worker is alive. Those that have long been silent are forgotten."""
    queue = await _queue(transaction)
    await queue.update_heartbeat(worker)
    await queue.prune_stalled_workers(FORGET_SECONDS)


async def dismiss(transaction: Transaction, worker: int) -> None:
    """A worker ends."""
    await (await _queue(transaction)).unregister_worker(worker)


async def workers(transaction: Transaction) -> int:
    """How many workers have been heard of lately."""
    return int((await transaction.connection.execute(_WORKERS, {"seconds": WORKER_SECONDS})).scalar_one())


def backoff(tries: int) -> float:
    """Seconds to wait before a job is tried again that has been put back `tries` times: 2, 4, 8 … 300."""
    return float(min(2 ** min(tries + 1, 16), BACKOFF_MAX_SECONDS))


def priority(due: datetime) -> int:
    """The priority of what is due at a moment: the sooner, the higher."""
    return -int((due - _EPOCH).total_seconds())


_EPOCH = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
