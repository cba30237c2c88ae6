"""The queue: procrastinate's tables and functions in a schema of their own, and what a job's card keeps for them.

`procrastinate/schema-3.10.0.sql` beside this folder is the file of that release, unchanged, under its MIT licence: a
migration must do the same whichever release is installed when it runs. A test compares the two, so that a newer
release comes with a migration of its own.
"""

from pathlib import Path

from alembic import op
from sqlalchemy import text

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SCHEMA = Path(__file__).parents[1] / "procrastinate" / "schema-3.10.0.sql"

# Its tables know no row-level security, so they hold nothing but ids of our jobs, and only of unfinished ones: what
# has ended is deleted there. The service calls the functions that it needs, which run with its own rights.
GRANTS = """
REVOKE ALL ON ALL TABLES IN SCHEMA procrastinate FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA procrastinate FROM PUBLIC;
GRANT USAGE ON SCHEMA procrastinate TO stacks_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON procrastinate.procrastinate_jobs TO stacks_service;
GRANT INSERT ON procrastinate.procrastinate_events TO stacks_service;
GRANT SELECT, INSERT, UPDATE (last_heartbeat), DELETE ON procrastinate.procrastinate_workers TO stacks_service;
GRANT SELECT (job_id), UPDATE (job_id) ON procrastinate.procrastinate_periodic_defers TO stacks_service;
GRANT USAGE ON SEQUENCE procrastinate.procrastinate_jobs_id_seq, procrastinate.procrastinate_events_id_seq
    TO stacks_service;
GRANT EXECUTE ON FUNCTION
    procrastinate.procrastinate_defer_jobs_v1(procrastinate.procrastinate_job_to_defer_v1[]),
    procrastinate.procrastinate_fetch_job_v2(character varying[], bigint),
    procrastinate.procrastinate_finish_job_v1(bigint, procrastinate.procrastinate_job_status, boolean),
    procrastinate.procrastinate_cancel_job_v1(bigint, boolean, boolean),
    procrastinate.procrastinate_retry_job_v2(
        bigint, timestamp with time zone, integer, character varying, character varying),
    procrastinate.procrastinate_register_worker_v1(),
    procrastinate.procrastinate_unregister_worker_v1(bigint),
    procrastinate.procrastinate_update_heartbeat_v1(bigint),
    procrastinate.procrastinate_prune_stalled_workers_v1(double precision)
    TO stacks_service;
"""

# delivery: the row of procrastinate_jobs that brings this job to a worker; none once it has ended.
# deaths: how many of its attempts ended with their worker, or with nothing heard of it.
# seconds: how long it is expected to take, which decides its turn.
CARDS = """
ALTER TABLE jobs
    ADD COLUMN delivery bigint UNIQUE,
    ADD COLUMN deaths integer NOT NULL DEFAULT 0,
    ADD COLUMN seconds real NOT NULL DEFAULT 1 CHECK (seconds > 0);
DROP INDEX jobs_to_do;
CREATE INDEX jobs_open ON jobs (collection_id, seconds) WHERE status IN ('queued', 'running');
CREATE INDEX jobs_in_hand ON jobs (leased_until) WHERE status = 'running';
DROP INDEX jobs_by_collection;
CREATE INDEX jobs_by_collection ON jobs (collection_id, created_at, id);
GRANT UPDATE (requested_by, delivery, deaths, seconds) ON jobs TO stacks_service;
"""

# What waits, or is in the hands of a worker of the release before, waits here from now on.
HAND_OVER = """
UPDATE jobs SET status = 'queued', leased_until = NULL WHERE status = 'running';
UPDATE jobs SET delivery = nextval('procrastinate.procrastinate_jobs_id_seq') WHERE status = 'queued';
INSERT INTO procrastinate.procrastinate_jobs (id, queue_name, task_name, queueing_lock, args)
SELECT delivery, 'ingest', 'ingest', id::text, jsonb_build_object('job', id)
FROM jobs WHERE status = 'queued' ORDER BY created_at, id;
"""


def upgrade() -> None:
    connection = op.get_bind()
    before = connection.execute(text("SELECT current_setting('search_path')")).scalar_one()
    set_path = text("SELECT set_config('search_path', :path, true)")
    op.execute("CREATE SCHEMA procrastinate")
    connection.execute(set_path, {"path": "procrastinate, public"})  # its script and its triggers name no schema
    _run_as_it_is(SCHEMA.read_text(encoding="utf-8"))
    op.execute(GRANTS)
    op.execute(CARDS)
    op.execute(HAND_OVER)
    connection.execute(set_path, {"path": before})


def downgrade() -> None:
    op.execute("DROP SCHEMA procrastinate CASCADE")
    op.execute("DROP INDEX jobs_open, jobs_in_hand, jobs_by_collection")
    op.execute("ALTER TABLE jobs DROP COLUMN delivery, DROP COLUMN deaths, DROP COLUMN seconds")
    op.execute("REVOKE UPDATE (requested_by) ON jobs FROM stacks_service")
    op.execute("CREATE INDEX jobs_to_do ON jobs (created_at) WHERE status IN ('queued', 'running')")
    op.execute("CREATE INDEX jobs_by_collection ON jobs (collection_id)")


def _run_as_it_is(script: str) -> None:
    """Run many statements at once, past SQLAlchemy, which would read their `%` and `:`."""
    driver = op.get_bind().connection.driver_connection
    if driver is None:
        raise RuntimeError("the migration has lost its connection")
    driver.execute(script)
