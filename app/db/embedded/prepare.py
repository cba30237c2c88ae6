"""What only the superuser can do in a new cluster: the owner's login, the database, the vector extension."""

from typing import TypeAlias

import psycopg
from psycopg import sql

from app.db.embedded.address import SUPERUSER, ClusterAddress
from app.errors import ConfigurationError

DATABASE = "stacks"
OWNER_LOGIN = "stacks_owner"
# Raise this when anything below changes, so that existing clusters are brought up to date.
_LAYOUT = 1

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]


def prepare(address: ClusterAddress, superuser_password: str, owner_password: str, vector: str) -> None:
    """Bring the cluster to the present layout with pgvector `vector`; one quick look when it is there already.

    Every step can be repeated, so a crash in between is made good by the next call. Raises psycopg.Error when the
    server refuses, ConfigurationError when the cluster holds a newer pgvector than is bundled.
    """
    mark = f"closed-stacks layout {_LAYOUT}, vector {vector}"
    with _connect(address, "postgres", superuser_password) as connection:
        if _mark(connection) == mark:
            return
        _make_owner(connection, owner_password)
        _make_database(connection)
    with _connect(address, DATABASE, superuser_password) as connection:
        _make_extension(connection, vector)
        connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(DATABASE), sql.Literal(mark)))


def _connect(address: ClusterAddress, database: str, password: str) -> Connection:
    return psycopg.connect(
        host=str(address.socket_dir),
        port=address.port,
        dbname=database,
        user=SUPERUSER,
        password=password,
        connect_timeout=10,
        autocommit=True,
        # The superuser must not run a function that the database's owner named like a built-in one.
        options="-c search_path=pg_catalog",
    )


def _mark(connection: Connection) -> object:
    query = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s"
    row = connection.execute(query, [DATABASE]).fetchone()
    return row[0] if row else None


def _make_owner(connection: Connection, password: str) -> None:
    # The server gets the SCRAM verifier, so the password itself is never part of a statement.
    verifier = connection.pgconn.encrypt_password(password.encode(), OWNER_LOGIN.encode(), b"scram-sha-256").decode()
    exists = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [OWNER_LOGIN]).fetchone()
    verb = sql.SQL("ALTER" if exists else "CREATE")
    statement = sql.SQL("{} ROLE {} LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS NOCREATEDB NOREPLICATION PASSWORD {}")
    connection.execute(statement.format(verb, sql.Identifier(OWNER_LOGIN), sql.Literal(verifier)))


def _make_database(connection: Connection) -> None:
    database, owner = sql.Identifier(DATABASE), sql.Identifier(OWNER_LOGIN)
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0").format(database, owner))
    # No login but the owner gets in anywhere until somebody grants it.
    for closed in (DATABASE, "postgres", "template1"):
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(closed)))


def _make_extension(connection: Connection, bundled: str) -> None:
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    installed = str(row[0]) if row else "0"
    if _numbers(installed) > _numbers(bundled):
        raise ConfigurationError(
            f"The database was made with pgvector {installed}, newer than the bundled {bundled}; update the appliance."
        )
    if installed != bundled:
        connection.execute("ALTER EXTENSION vector UPDATE")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
