"""What runs underneath, for whoever has to know whether it is what this code expects."""

from dataclasses import dataclass

from sqlalchemy import text

from app.db.session import Transaction

_SERVER = text("""
    SELECT current_setting('server_version') AS postgres,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector,
           has_table_privilege(to_regclass('public.alembic_version'), 'SELECT') AS readable
""")
_REVISION = text("SELECT version_num FROM alembic_version")


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """Versions of Postgres and pgvector, and the revision of the schema (None: from before it could be read)."""

    postgres: str
    vector: str
    revision: str | None


async def read(transaction: Transaction) -> DatabaseState:
    """The state of the database that `transaction` is in."""
    server = (await transaction.connection.execute(_SERVER)).one()
    revision = (await transaction.connection.execute(_REVISION)).scalar_one_or_none() if server.readable else None
    return DatabaseState(server.postgres, server.vector, revision)
