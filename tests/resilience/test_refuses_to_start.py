"""A start that must not succeed ends with a plain message, the right exit code and no traceback."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg import sql
from serving import over
from sqlalchemy.engine import make_url
from support.postgres import TICKET_KEY, RunCluster, RunDatabase
from support.server import ROOT, free_port

from app import bootstrap, config
from app.config import Settings
from app.db.engine import create_engine, refuse_old_vector
from app.db.session import Database
from app.db.tickets import TicketPrinter
from app.errors import ConfigurationError

WRONG, UNAVAILABLE = 2, 5


def _start(tmp_path: Path, model_dir: Path, command: str = "serve", **settings: str) -> tuple[int, str]:
    """Run `stacks COMMAND` to its end; its exit code and what it said on stderr."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STACKS_")}
    chosen = {"STACKS_DATA_DIR": str(tmp_path / "data"), "STACKS_MODEL_DIR": str(model_dir)}
    environment = {**kept, **chosen, "STACKS_PORT": str(free_port()), **settings}
    done = subprocess.run(
        [sys.executable, "-m", "app", command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.returncode, done.stderr


@contextmanager
def _login(database: RunDatabase, attributes: str = "", member_of: str = "stacks_service") -> Iterator[str]:
    """The URL of a new login."""
    name = f"login_{uuid4().hex[:12]}"
    with database.superuser() as connection:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret' " + attributes + " IN ROLE {}")
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(member_of)))
        allow = sql.SQL("GRANT CONNECT ON DATABASE {} TO {}")
        connection.execute(allow.format(sql.Identifier(connection.info.dbname), sql.Identifier(name)))
        try:
            url = make_url(database.service_url).set(username=name, password="secret")
            yield url.render_as_string(hide_password=False)
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {0}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


async def _check(url: str) -> None:
    engine = create_engine(url)
    try:
        await Database(engine, check_tickets=TicketPrinter(TICKET_KEY).check).check_login()
    finally:
        await engine.dispose()


@pytest.mark.parametrize(
    ("attributes", "member_of", "said"),
    [
        ("SUPERUSER", "stacks_service", "superuser"),
        ("BYPASSRLS", "stacks_service", "BYPASSRLS"),
        ("", "pg_read_all_data", "ticket key"),
        ("", "pg_write_all_data", "call log"),
        ("", "pg_monitor", "stacks migrate"),
        ("", "stacks_owner", "owner"),
        ("", "postgres", "may become"),
        ("CREATEROLE", "stacks_service", "make roles"),
    ],
)
async def test_a_login_that_row_security_would_not_bind(
    shared_database: RunDatabase, attributes: str, member_of: str, said: str
) -> None:
    with _login(shared_database, attributes, member_of) as url, pytest.raises(ConfigurationError, match=said):
        await _check(url)


async def test_a_plain_member_of_the_service_role_is_let_in(shared_database: RunDatabase) -> None:
    with _login(shared_database) as url:
        await _check(url)


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_the_owner_itself(postgres_database: RunDatabase, tmp_path: Path, model_dir: Path, command: str) -> None:
    chosen = over(postgres_database, STACKS_DATABASE_URL=postgres_database.owner_url)
    code, message = _start(tmp_path, model_dir, command, **chosen)
    assert code == WRONG
    assert "owner" in message


@pytest.mark.parametrize("extension", ["with", "without"])
def test_a_database_that_is_not_migrated(
    postgres_cluster: RunCluster, tmp_path: Path, model_dir: Path, extension: str
) -> None:
    with postgres_cluster.empty() as database:
        with database.superuser() as connection:
            if extension == "without":
                connection.execute("DROP EXTENSION vector")
        code, message = _start(tmp_path, model_dir, **over(database))
    assert code == WRONG
    assert "stacks migrate" in message


def test_a_database_that_lost_its_extension(postgres_database: RunDatabase, tmp_path: Path, model_dir: Path) -> None:
    with postgres_database.superuser() as connection:
        connection.execute("DROP EXTENSION vector CASCADE")
    code, message = _start(tmp_path, model_dir, **over(postgres_database))
    assert code == WRONG
    assert "extension vector" in message


@pytest.mark.parametrize("change", ["NO FORCE ROW LEVEL SECURITY", "DISABLE ROW LEVEL SECURITY"])
async def test_a_table_that_lost_its_row_security(shared_database: RunDatabase, change: str) -> None:
    with shared_database.superuser() as connection:
        connection.execute(f"ALTER TABLE chunks {change}".encode())
        try:
            with pytest.raises(ConfigurationError, match="Row-level security"):
                await _check(shared_database.service_url)
        finally:
            connection.execute("ALTER TABLE chunks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")


@pytest.mark.parametrize("version", ["0.8.3", "0.7.4", "0.8", None])
def test_an_old_pgvector(version: str | None) -> None:
    with pytest.raises(ConfigurationError):
        refuse_old_vector(version)


@pytest.mark.parametrize("version", ["0.8.4", "0.8.10", "0.9.0", "1.0"])
def test_a_good_pgvector(version: str) -> None:
    refuse_old_vector(version)


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_another_ticket_key(postgres_database: RunDatabase, tmp_path: Path, model_dir: Path, command: str) -> None:
    chosen = over(postgres_database, STACKS_TICKET_KEY="quite another key")
    code, message = _start(tmp_path, model_dir, command, **chosen)
    assert code == WRONG
    assert "STACKS_TICKET_KEY" in message
    assert "quite another key" not in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STACKS_PORT", "none"),
        ("STACKS_PORT", "70000"),
        ("STACKS_WORKERS", "0"),
        ("STACKS_DATABASE_SECONDS", "0"),
        ("STACKS_DATABASE_SECONDS", "nan"),
        ("STACKS_LOG_LEVEL", "loud"),
        ("STACKS_DATABASE_URL", "mysql://somewhere"),
        ("STACKS_PUBLIC_URL", "ftp://somewhere"),
        ("STACKS_NO_SUCH", "1"),
        ("STACKS_CONFIG", "/nowhere/stacks.toml"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        config.load({name: value})


def test_the_start_says_so(tmp_path: Path, model_dir: Path) -> None:
    code, message = _start(tmp_path, model_dir, STACKS_PORT="70000")
    assert code == WRONG
    assert "STACKS_PORT" in message
    assert "1..65535" in message


@pytest.mark.parametrize("url", ["postgres:nonsense", "postgresql://somebody:secret@host:port/name"])
def test_a_database_url_that_is_none(url: str) -> None:
    settings = Settings(database_url=url)
    with pytest.raises(ConfigurationError, match="STACKS_DATABASE_URL") as refused, bootstrap.postgres(settings):
        pass
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_taken_port(postgres_database: RunDatabase, tmp_path: Path, model_dir: Path, workers: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        chosen = over(postgres_database, STACKS_PORT=port, STACKS_WORKERS=workers)
        code, message = _start(tmp_path, model_dir, **chosen)
    assert code == WRONG
    assert "STACKS_PORT" in message
    assert port in message


def test_nobody_answers_at_the_database_url(postgres_database: RunDatabase, tmp_path: Path, model_dir: Path) -> None:
    nobody = make_url(postgres_database.service_url).set(password="wrong").render_as_string(hide_password=False)
    code, message = _start(tmp_path, model_dir, **over(postgres_database, STACKS_DATABASE_URL=nobody))
    assert code == UNAVAILABLE
    assert "STACKS_DATABASE_URL" in message
