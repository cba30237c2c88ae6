"""The connection pool, and the checks that a login must pass before anything is served through it."""

from typing import Any

from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection as DriverConnection
from psycopg import ProgrammingError
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.errors import ConfigurationError

MINIMUM_POSTGRES = 150000
MINIMUM_VECTOR = (0, 8, 4)


def create_engine(url: str, *, pool_size: int = 10, statement_timeout_ms: int = 8000) -> AsyncEngine:
    """Make the pool for the service login.

    `statement_timeout_ms` bounds every statement on the server's side; the pool itself never waits longer than a
    few seconds for a connection. Connections speak vectors in binary.
    """
    options = f"-c statement_timeout={statement_timeout_ms} -c idle_in_transaction_session_timeout=60000"
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=3,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"connect_timeout": 3, "application_name": "stacks", "options": options},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def _register(connection: DBAPIConnection, _record: Any) -> None:
        connection.run_async(_speak_vectors)

    return engine


async def _speak_vectors(connection: DriverConnection[Any]) -> None:
    try:
        await register_vector_async(connection)
    except ProgrammingError:
        return  # no such type here: `refuse_unsafe_login` says what is missing, and where there are no vectors none fit


_LOGIN = text("""
    SELECT current_setting('server_version_num')::int AS postgres, r.rolsuper, r.rolbypassrls, r.rolcreaterole,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector,
           to_regclass('public.policy_state') IS NOT NULL AND to_regprocedure('public.ticket_holds()') IS NOT NULL
               AS migrated,
           pg_has_role(current_user, (SELECT nspowner FROM pg_namespace WHERE nspname = 'public'), 'MEMBER')
               AS schema_owner,
           EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')
                   AND pg_has_role(current_user, c.relowner, 'MEMBER')
                   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')) AS owns,
           EXISTS (SELECT FROM pg_roles p WHERE (p.rolsuper OR p.rolbypassrls)
                   AND pg_has_role(current_user, p.oid, 'MEMBER')) AS may_become,
           EXISTS (SELECT FROM pg_roles p WHERE p.rolname = 'stacks_service'
                   AND pg_has_role(current_user, p.oid, 'USAGE')) AS serves,
           has_any_column_privilege(to_regclass('public.ticket_keys'), 'SELECT, INSERT, UPDATE')
               OR has_table_privilege(to_regclass('public.calls'), 'UPDATE, DELETE, TRUNCATE') AS meddles
    FROM pg_roles r WHERE r.rolname = current_user
""")

_UNPROTECTED = text("""
    SELECT count(*) FROM unnest(ARRAY['documents', 'document_versions', 'originals', 'document_texts', 'chunks']) AS t
    JOIN pg_class c ON c.oid = to_regclass('public.' || t)
    WHERE c.relrowsecurity AND c.relforcerowsecurity AND row_security_active(c.oid)
""")


async def refuse_unsafe_login(connection: AsyncConnection) -> None:
    """Raise `ConfigurationError` unless this login owns nothing, can become nobody greater, and is bound by RLS."""
    login = (await connection.execute(_LOGIN)).one()
    if login.rolsuper or login.rolbypassrls or login.may_become:
        raise ConfigurationError(
            "The service login is a superuser, has BYPASSRLS, or may become a role that is or has: row-level security "
            "would not bind it. Point STACKS_DATABASE_URL at a plain login."
        )
    if login.owns or login.schema_owner or login.rolcreaterole:
        raise ConfigurationError(
            "The service login owns tables or may make roles. Use a login of its own, apart from the owner of the "
            "schema, for STACKS_DATABASE_URL."
        )
    if login.postgres < MINIMUM_POSTGRES:
        raise ConfigurationError("Postgres 15 or newer is needed.")
    if not login.migrated:
        raise ConfigurationError("The database is not migrated. Run: stacks migrate")
    if login.meddles:
        raise ConfigurationError(
            "The service login may read the ticket key or change the call log. Use a login that is a member of "
            "stacks_service and of nothing else for STACKS_DATABASE_URL."
        )
    if not login.serves:
        raise ConfigurationError("The service login is not a member of stacks_service. Run: stacks migrate")
    refuse_old_vector(login.vector)
    if (await connection.execute(_UNPROTECTED)).scalar_one() != 5:
        raise ConfigurationError("Row-level security is not in force on every table with text. Run: stacks migrate")


def refuse_old_vector(version: str | None) -> None:
    """Raise `ConfigurationError` unless pgvector is there and has the fixes of 0.8.4 (CVE-2026-3172)."""
    if version is None:
        raise ConfigurationError(
            "The extension vector is not in the database. As a superuser, run: CREATE EXTENSION vector"
        )
    if tuple(int(part) for part in version.split(".")[:3]) < MINIMUM_VECTOR:
        raise ConfigurationError(f"pgvector {version} has known security faults; 0.8.4 or newer is needed.")
