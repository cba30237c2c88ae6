"""The real migrations on the real Postgres: up, down, up again, and what they leave for the service's login."""

import psycopg
import pytest
from support.postgres import TICKET_KEY, RunCluster, RunDatabase

from app.db.migrate import downgrade, migrate
from app.db.tickets import TicketPrinter

OURS = """
    SELECT relname FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'S')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') AND relname <> 'alembic_version'
    UNION ALL
    SELECT proname FROM pg_proc p WHERE pronamespace = 'public'::regnamespace
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""
PROTECTED = ("documents", "document_versions", "originals", "document_texts", "chunks")


def _names(database: RunDatabase) -> set[object]:
    with database.superuser() as connection:
        return {name for (name,) in connection.execute(OURS)}


def test_up_down_and_up_again(postgres_cluster: RunCluster) -> None:
    printer = TicketPrinter(TICKET_KEY)
    with postgres_cluster.empty() as database:
        migrate(database.owner_url, database.service_url, printer)
        made = _names(database)
        downgrade(database.owner_url, "base")
        assert _names(database) == set()
        migrate(database.owner_url, database.service_url, printer)
        assert _names(database) == made
        migrate(database.owner_url, database.service_url, printer)


@pytest.mark.parametrize("table", PROTECTED)
def test_row_security_is_forced_on_every_table_with_text(postgres_database: RunDatabase, table: str) -> None:
    with postgres_database.superuser() as connection:
        forced = connection.execute(
            "SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE oid = to_regclass(%s)", [table]
        ).fetchone()
    assert forced == (True,)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM calls",
        "UPDATE calls SET outcome = 'ok'",
        "TRUNCATE calls",
        "DELETE FROM grants",
        "UPDATE grants SET effect = 'allow'",
        "UPDATE memberships SET member = 'x'",
        "DELETE FROM memberships",
        "UPDATE policy_state SET version = 1",
        "SELECT * FROM ticket_keys",
        "SELECT ticket_payload()",
        "SELECT party_classes('{}', 'search')",
        "UPDATE chunk_index SET class_id = 1",
        "UPDATE chunks SET content = 'x'",
        "UPDATE document_texts SET content = 'x'",
        "DELETE FROM chunks",
        "ALTER TABLE chunks DISABLE ROW LEVEL SECURITY",
        "CREATE TABLE x ()",
        "CREATE TEMP TABLE x ()",
        "SET ROLE stacks_owner",
        "SELECT secret_sha256 FROM tokens WHERE pg_read_file('/etc/passwd') IS NOT NULL",
    ],
)
def test_the_service_login_may_not(postgres_database: RunDatabase, statement: str) -> None:
    with postgres_database.service() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)
