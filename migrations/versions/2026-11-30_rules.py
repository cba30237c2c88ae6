"""Roles, memberships, grants and tokens: typed, temporal rows that are revoked but never deleted."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE policy_state (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version bigint NOT NULL DEFAULT 1
);
INSERT INTO policy_state DEFAULT VALUES;

CREATE TABLE collections (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    title text NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
    owner text NOT NULL,
    -- Whoever confirms a purge is never the one who runs the collection: two people, or it does not happen.
    purge_confirmer text CHECK (purge_confirmer <> owner),
    corpus_version integer NOT NULL DEFAULT 0 CHECK (corpus_version >= 0),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE access_classes (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id uuid NOT NULL REFERENCES collections,
    labels text[] NOT NULL DEFAULT '{}',
    document_id uuid,
    UNIQUE NULLS NOT DISTINCT (collection_id, labels, document_id)
);
CREATE UNIQUE INDEX access_classes_by_document ON access_classes (document_id) WHERE document_id IS NOT NULL;

CREATE TABLE roles (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    builtin boolean NOT NULL DEFAULT false,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- `member` belongs to `container`: principals and groups to groups and roles, roles to roles.
CREATE TABLE memberships (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    member_kind text NOT NULL CHECK (member_kind IN ('principal', 'group', 'role')),
    member text NOT NULL,
    container_kind text NOT NULL CHECK (container_kind IN ('group', 'role')),
    container text NOT NULL,
    valid_from timestamptz NOT NULL DEFAULT now(),
    valid_until timestamptz CHECK (valid_until > valid_from),
    reason text NOT NULL DEFAULT '',
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT now(),
    revoked_by text,
    revoked_at timestamptz,
    CHECK (NOT (member_kind = 'role' AND container_kind = 'group')),
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX memberships_by_member ON memberships (member_kind, member);
CREATE INDEX memberships_by_container ON memberships (container_kind, container);
CREATE UNIQUE INDEX memberships_in_force ON memberships (member_kind, member, container_kind, container)
    WHERE revoked_at IS NULL;

CREATE TABLE grants (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    subject_kind text NOT NULL CHECK (subject_kind IN ('principal', 'role')),
    subject text NOT NULL,
    action text NOT NULL
        CHECK (action IN ('search', 'open', 'ingest', 'publish', 'purge', 'manage', 'audit', 'create')),
    effect text NOT NULL CHECK (effect IN ('allow', 'deny')),
    resource_kind text NOT NULL CHECK (resource_kind IN ('system', 'collection', 'label', 'document')),
    collection_id uuid REFERENCES collections,
    label text,
    document_id uuid,
    valid_from timestamptz NOT NULL DEFAULT now(),
    valid_until timestamptz CHECK (valid_until > valid_from),
    reason text NOT NULL DEFAULT '',
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT now(),
    revoked_by text,
    revoked_at timestamptz,
    CHECK ((resource_kind = 'system') = (collection_id IS NULL)),
    CHECK ((resource_kind = 'label') = (label IS NOT NULL)),
    CHECK ((resource_kind = 'document') = (document_id IS NOT NULL)),
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX grants_by_subject ON grants (subject_kind, subject, action);
CREATE INDEX grants_by_collection ON grants (collection_id);

CREATE TABLE tokens (
    id text PRIMARY KEY,
    secret_sha256 bytea NOT NULL,
    subject text NOT NULL,
    actor text,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    actions text[],
    collections text[],
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_by text,
    revoked_at timestamptz,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
CREATE INDEX tokens_by_subject ON tokens (subject);

-- Whatever could alter a compiled scope raises the version, so that nobody has to remember to.
CREATE FUNCTION raise_policy_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    UPDATE public.policy_state SET version = version + 1;
    RETURN NULL;
END $$;
"""

RULE_TABLES = ("memberships", "grants", "access_classes", "collections")

TRIGGER = """
CREATE TRIGGER raise_policy_version_{operation} AFTER {event} ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION raise_policy_version();
"""


def upgrade() -> None:
    op.execute(TABLES)
    for table in RULE_TABLES:
        # A publish raises a corpus version but no rule: of `collections` only a new row or another owner counts.
        changed = "UPDATE OF slug, owner" if table == "collections" else "UPDATE"
        for operation, event in (("insert", "INSERT"), ("update", changed), ("delete", "DELETE")):
            op.execute(TRIGGER.format(operation=operation, event=event, table=table))


def downgrade() -> None:
    op.execute("DROP TABLE tokens, grants, memberships, roles, access_classes, collections, policy_state")
    op.execute("DROP FUNCTION raise_policy_version()")
