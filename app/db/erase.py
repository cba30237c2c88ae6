"""What purged rows leave in the files of their tables is erased by rewriting these.

VACUUM gives the room of a deleted row back and leaves its bytes there until something else is written over them; only
a rewrite (VACUUM FULL) is sure. It needs the owner login, and stops searches of the one table while that is copied. A
snapshot older than the purge would have the deleted rows copied along: then the purge counts as not erased yet.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from app.errors import IndexUnavailable

_CONNECT = {"connect_timeout": 3, "application_name": "stacks eraser"}
_TRY = text("SELECT pg_try_advisory_lock(hashtextextended('closed-stacks erase', 0))")
_PATIENCE = text("SET lock_timeout = '3s'")
_WAITING = text("SELECT count(*) FROM purges WHERE status = 'purged' AND erased_at IS NULL")
_TABLES = """unnest(ARRAY['originals', 'document_texts', 'chunks', 'chunk_index', 'class_terms', 'document_versions'])
    AS t (name)"""
_SIZE = text(f"SELECT sum(pg_total_relation_size(to_regclass('public.' || t.name))) FROM {_TABLES}")
_REWRITE = (
    text("VACUUM (FULL) document_versions"),
    text("VACUUM (FULL) originals"),
    text("VACUUM (FULL) document_texts"),
    text("VACUUM (FULL) chunks"),
    text("VACUUM (FULL) chunk_index"),
    text("VACUUM (FULL) class_terms"),
)
# A rewrite leaves nothing that was deleted before the oldest snapshot of its moment, and notes that as relfrozenxid.
_ERASED = text(f"""
    UPDATE purges SET erased_at = clock_timestamp()
    WHERE status = 'purged' AND erased_at IS NULL AND (
        SELECT bool_and(age(c.relfrozenxid) < age(xid(purges.deleted_in)))
        FROM {_TABLES} JOIN pg_class c ON c.oid = to_regclass('public.' || t.name))
""")


@dataclass(frozen=True, slots=True)
class Erasure:
    """How many purges were erased from the files, and how many wait on: another process is at it, or a transaction
    that is older than them is open, or (`too_large`) the tables are larger than was allowed."""

    erased: int
    waiting: int
    too_large: bool = False


def erase(owner_url: str, *, bytes_max: int | None = None) -> Erasure:
    """Rewrite the tables if a purge waits for it, unless they are larger than `bytes_max` together.

    Raises `IndexUnavailable` when Postgres does not answer, or a table is in use for more than seconds on end.
    """
    engine = create_engine(owner_url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=_CONNECT)
    try:
        with engine.connect() as connection:
            return _erase(connection, bytes_max)
    except OperationalError as fault:
        raise IndexUnavailable("Postgres does not answer the owner login, or a table is in use; try again.") from fault


def _erase(connection: Connection, bytes_max: int | None) -> Erasure:
    waiting = connection.execute(_WAITING).scalar_one()
    if not waiting:
        return Erasure(0, 0)
    if bytes_max is not None and connection.execute(_SIZE).scalar_one() > bytes_max:
        return Erasure(0, waiting, too_large=True)
    if not connection.execute(_TRY).scalar_one():
        return Erasure(0, waiting)
    connection.execute(_PATIENCE)
    for rewrite in _REWRITE:
        connection.execute(rewrite)
    erased = connection.execute(_ERASED).rowcount
    return Erasure(erased, waiting - erased)
