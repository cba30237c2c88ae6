"""The queue's schema is the one of the installed procrastinate, and jobs of the release before go on in it."""

from importlib.resources import files
from pathlib import Path

import psycopg
import pytest
from support.postgres import TICKET_KEY, RunCluster, RunDatabase

from app.db.migrate import downgrade, migrate
from app.db.tickets import TicketPrinter

VENDORED = Path(__file__).parents[2] / "migrations" / "procrastinate"

# A document with one version and one job of each status, as the release before left them.
BEFORE = """
DO $$
DECLARE
    shelf uuid; class integer; document uuid; state text;
BEGIN
    INSERT INTO collections (slug, title, owner) VALUES ('shelf', 'Shelf', 'local|owner') RETURNING id INTO shelf;
    INSERT INTO access_classes (collection_id, labels) VALUES (shelf, '{}') RETURNING id INTO class;
    FOREACH state IN ARRAY ARRAY['queued', 'running', 'done', 'failed'] LOOP
        INSERT INTO documents (class_id, collection_id, source_id, title, created_by)
            VALUES (class, shelf, state, state, 'local|owner') RETURNING id INTO document;
        INSERT INTO document_versions (document_id, version, class_id, file_name, content_sha256, size, created_by)
            VALUES (document, 1, class, state, repeat('0', 64), 1, 'local|owner');
        INSERT INTO jobs (collection_id, document_id, version, requested_by, status, attempts, leased_until)
            VALUES (shelf, document, 1, '{}', state, 1, now());
    END LOOP;
END $$
"""


def _rows(database: RunDatabase, query: str) -> list[tuple[object, ...]]:
    with database.superuser() as connection:
        return connection.execute(query.encode()).fetchall()


def test_the_schema_is_that_of_the_installed_release() -> None:
    kept = (VENDORED / "schema-3.10.0.sql").read_text()
    assert kept == (files("procrastinate") / "sql" / "schema.sql").read_text()
    assert "MIT License" in (VENDORED / "LICENSE.md").read_text()


def test_jobs_of_the_release_before_wait_in_the_queue(postgres_cluster: RunCluster) -> None:
    printer = TicketPrinter(TICKET_KEY)
    with postgres_cluster.empty() as database:
        migrate(database.owner_url, database.service_url, printer, revision="0004")
        with database.superuser() as connection:
            connection.execute(BEFORE)
        migrate(database.owner_url, database.service_url, printer)
        cards = _rows(database, "SELECT source_id, status FROM jobs JOIN documents d ON d.id = document_id")
        assert set(cards) == {("queued", "queued"), ("running", "queued"), ("done", "done"), ("failed", "failed")}
        delivered = """SELECT p.args FROM procrastinate.procrastinate_jobs p JOIN jobs j ON j.delivery = p.id
                       WHERE p.status = 'todo' AND j.status = 'queued' AND p.args = jsonb_build_object('job', j.id)"""
        assert len(_rows(database, delivered)) == len(_rows(database, "SELECT FROM procrastinate.procrastinate_jobs"))
        assert len(_rows(database, delivered)) == 2
        downgrade(database.owner_url, "0004")
        assert _rows(database, "SELECT count(*) FROM jobs WHERE status = 'queued'") == [(2,)]
        assert _rows(database, "SELECT to_regnamespace('procrastinate')") == [(None,)]


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE procrastinate.procrastinate_jobs",
        "SELECT * FROM procrastinate.procrastinate_events",
        "DELETE FROM procrastinate.procrastinate_events",
        "INSERT INTO procrastinate.procrastinate_periodic_defers (task_name) VALUES ('x')",
        "SELECT procrastinate.procrastinate_defer_periodic_job_v2('a', 'b', 'c', 'd', 1, 'e', 1, '{}')",
        "CREATE TABLE procrastinate.x ()",
        "DROP FUNCTION procrastinate.procrastinate_register_worker_v1()",
    ],
)
def test_the_service_login_may_not(postgres_database: RunDatabase, statement: str) -> None:
    with postgres_database.service() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


def test_the_queue_has_no_place_for_content(postgres_database: RunDatabase) -> None:
    """Its tables know no row-level security: what could be put there is an id, and words of ours."""
    columns = _rows(
        postgres_database,
        """SELECT table_name, column_name FROM information_schema.columns
           WHERE table_schema = 'procrastinate' AND data_type IN ('json', 'jsonb', 'bytea')""",
    )
    assert columns == [("procrastinate_jobs", "args")]
