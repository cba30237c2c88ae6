"""A real Postgres with the real migrations: one cluster a run, one clone of a migrated template a test."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from pytest_postgresql.janitor import DatabaseJanitor

from app.db.embedded import OWNER_LOGIN, SUPERUSER, ClusterAddress, EmbeddedCluster
from app.db.migrate import migrate
from app.db.secrets import secret
from app.db.tickets import TicketPrinter

SERVICE_LOGIN = "stacks_login"
TICKET_KEY = "a key that only the tests use"


@dataclass(frozen=True, slots=True)
class RunDatabase:
    """One database of its own, with the URLs of the three logins."""

    service_url: str
    owner_url: str
    superuser_url: str

    def superuser(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection that row-level security does not bind, to look behind the scenes."""
        return psycopg.connect(self.superuser_url.replace("+psycopg", ""), autocommit=True)

    def service(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection as the service has it."""
        return psycopg.connect(self.service_url.replace("+psycopg", ""), autocommit=True)


class RunCluster:
    """The run's cluster, and databases in it."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._cluster = EmbeddedCluster(data_dir, shared_buffers="512MB", system_dir=data_dir.parent / "system")

    @contextmanager
    def running(self) -> Iterator["RunCluster"]:
        """Hold the cluster for the length of the context."""
        with self._cluster as address:
            self._socket, self._port = address.socket_dir, address.port
            yield self

    def at(self, name: str) -> RunDatabase:
        """The URLs of a database of this name."""
        address = ClusterAddress(self._socket, self._port, name)
        return RunDatabase(
            address.url(SERVICE_LOGIN, secret(self._data_dir, "service")),
            address.url(OWNER_LOGIN, secret(self._data_dir, "owner")),
            address.url(SUPERUSER, secret(self._data_dir, "superuser")),
        )

    @contextmanager
    def empty(self, name: str | None = None, template: str | None = None) -> Iterator[RunDatabase]:
        """A new database, dropped afterwards: a clone of `template`, or empty but for the extension."""
        name = name or f"t{uuid.uuid4().hex[:16]}"
        janitor = DatabaseJanitor(
            user=SUPERUSER,
            host=str(self._socket),
            port=self._port,
            dbname=name,
            template_dbname=template,
            password=secret(self._data_dir, "superuser"),
        )
        with janitor:
            database = self.at(name)
            with database.superuser() as connection:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                statements = ["ALTER DATABASE {} OWNER TO stacks_owner"]
                if template is not None:  # privileges on a database are not cloned with it
                    statements += [
                        "REVOKE ALL ON DATABASE {} FROM PUBLIC",
                        "GRANT CONNECT ON DATABASE {} TO stacks_login",
                    ]
                for statement in statements:
                    connection.execute(sql.SQL(statement).format(sql.Identifier(name)))
            yield database

    @contextmanager
    def template(self) -> Iterator[str]:
        """A migrated database to clone; its name."""
        name = f"template{uuid.uuid4().hex[:12]}"
        with self.empty(name) as database:
            migrate(database.owner_url, database.service_url, TicketPrinter(TICKET_KEY))
            yield name
