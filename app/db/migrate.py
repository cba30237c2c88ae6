"""Migrations, run as the owner login; afterwards the service login and the ticket key are put in place."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from app.db.engine import refuse_old_vector
from app.db.tickets import TicketPrinter
from app.errors import ConfigurationError, IndexUnavailable

MIGRATIONS = Path(__file__).parents[2] / "migrations"

_KEYS = text("""
    INSERT INTO ticket_keys (inner_pad, outer_pad) VALUES (:inner, :outer)
    ON CONFLICT (only_row) DO UPDATE SET inner_pad = excluded.inner_pad, outer_pad = excluded.outer_pad
""")


def migrate(owner_url: str, service_url: str, printer: TicketPrinter, *, revision: str = "head") -> None:
    """Bring the schema to `revision`, and the service login and ticket key with it.

    Raises `ConfigurationError` when the owner login may not do this, `IndexUnavailable` when Postgres is not there.
    """
    engine = create_engine(owner_url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            command.upgrade(_alembic(connection), revision)
            connection.commit()
            if revision == "head":
                _refuse_old_vector(connection)
                _provision_login(connection, service_url)
                inner, outer = printer.pads()
                connection.execute(_KEYS, {"inner": inner, "outer": outer})
                connection.commit()
    except OperationalError as fault:
        raise IndexUnavailable("Postgres does not answer the owner login.") from fault


def head() -> str:
    """The newest revision that this code knows."""
    return str(ScriptDirectory(str(MIGRATIONS)).get_current_head())


def downgrade(owner_url: str, revision: str) -> None:
    """Take the schema back to `revision` (`base` for nothing at all)."""
    engine = create_engine(owner_url, poolclass=NullPool)
    with engine.connect() as connection:
        command.downgrade(_alembic(connection), revision)
        connection.commit()


def _alembic(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def _refuse_old_vector(connection: Connection) -> None:
    version = connection.execute(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")).scalar()
    refuse_old_vector(version)


def _provision_login(connection: Connection, service_url: str) -> None:
    """Make the service login if need be, and make it a member of `stacks_service`, which holds the grants."""
    url = make_url(service_url)
    owner = connection.execute(text("SELECT current_user")).scalar_one()
    if not url.username or url.username == owner:
        raise ConfigurationError("STACKS_DATABASE_URL must name a login of its own, not the owner's.")
    login = connection.dialect.identifier_preparer.quote(url.username)
    exists = connection.execute(text("SELECT FROM pg_roles WHERE rolname = :name"), {"name": url.username}).first()
    if exists is None:
        connection.execute(text(f"CREATE ROLE {login} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE"))
        _set_password(connection, login, url.password)
    connection.execute(text(f"GRANT stacks_service TO {login}"))
    connection.execute(text("GRANT SELECT ON alembic_version TO stacks_service"))  # `stacks status` compares it
    database = connection.dialect.identifier_preparer.quote(str(url.database))
    # Nobody gets in who was not let in, and the service makes no tables, not even temporary ones.
    connection.execute(text(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC"))
    connection.execute(text(f"GRANT CONNECT ON DATABASE {database} TO {login}"))


def _set_password(connection: Connection, login: str, password: str | None) -> None:
    """Set a password without its text in a statement: libpq hashes it here (SCRAM-SHA-256) before it is sent."""
    raw = connection.connection.driver_connection
    if password is None or raw is None:
        return
    name = login.strip('"')
    hashed = raw.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
    literal = connection.execute(text("SELECT quote_literal(:hashed)"), {"hashed": hashed}).scalar_one()
    connection.execute(text(f"ALTER ROLE {login} PASSWORD {literal}".replace(":", "\\:")))
