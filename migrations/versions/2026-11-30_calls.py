"""The call log and the jobs."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UPGRADE = """
CREATE TABLE calls (
    sequence bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    call_id uuid PRIMARY KEY,
    at timestamptz NOT NULL,
    principal text,
    actor text,
    entrypoint text NOT NULL,
    operation text NOT NULL,
    collection text,
    outcome text NOT NULL,
    corpus_versions text[] NOT NULL,
    policy_version bigint,
    document_ids uuid[] NOT NULL,
    chunk_ids uuid[] NOT NULL,
    latency_ms real NOT NULL,
    query_digest text
);
CREATE INDEX calls_by_time ON calls (at, call_id);
CREATE INDEX calls_by_collection ON calls (collection, at, call_id);

CREATE TABLE jobs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    collection_id uuid NOT NULL REFERENCES collections,
    document_id uuid NOT NULL REFERENCES documents,
    version integer NOT NULL,
    requested_by jsonb NOT NULL,
    status text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    progress real NOT NULL DEFAULT 0 CHECK (progress BETWEEN 0 AND 1),
    code text,
    message text,
    attempts integer NOT NULL DEFAULT 0,
    leased_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    UNIQUE (document_id, version),
    FOREIGN KEY (document_id, version) REFERENCES document_versions
);
CREATE INDEX jobs_to_do ON jobs (created_at) WHERE status IN ('queued', 'running');
CREATE INDEX jobs_by_collection ON jobs (collection_id);
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute("DROP TABLE jobs, calls")
