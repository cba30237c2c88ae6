"""Editions that can be gone back to, and versions that can be purged.

A version may be live in several ranges of editions. `publications` is the whole history; the columns on
`document_versions` and `chunk_index` say what the present edition needs. A trigger writes the history, and no login of
the service may: what was live in an edition can't be rewritten, only continued.
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

PUBLICATIONS = """
-- A version is live in the editions from live_from to before live_until. The chunks that were live in edition n:
-- chunk_index JOIN publications p USING (document_id, version)
-- WHERE p.live_from <= n AND coalesce(p.live_until > n, true).
CREATE TABLE publications (
    document_id uuid NOT NULL,
    version integer NOT NULL,
    live_from integer NOT NULL CHECK (live_from > 0),
    live_until integer CHECK (live_until > live_from),
    PRIMARY KEY (document_id, live_from),
    FOREIGN KEY (document_id, version) REFERENCES document_versions
);
CREATE UNIQUE INDEX publications_live ON publications (document_id) WHERE live_until IS NULL;
ALTER TABLE document_versions NO FORCE ROW LEVEL SECURITY;
INSERT INTO publications (document_id, version, live_from, live_until)
SELECT document_id, version, published_from, published_until FROM document_versions WHERE published_from IS NOT NULL;
ALTER TABLE document_versions FORCE ROW LEVEL SECURITY;

CREATE FUNCTION follow_publication() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    before_from integer := CASE WHEN TG_OP = 'UPDATE' THEN OLD.published_from END;
    before_until integer := CASE WHEN TG_OP = 'UPDATE' THEN OLD.published_until END;
BEGIN
    IF (NEW.published_from, NEW.published_until) IS NOT DISTINCT FROM (before_from, before_until) THEN
        RETURN NULL;
    ELSIF NEW.published_from = before_from AND before_until IS NULL THEN
        UPDATE public.publications SET live_until = NEW.published_until
        WHERE document_id = NEW.document_id AND live_from = NEW.published_from;
    ELSIF NEW.published_until IS NULL AND (before_from IS NULL OR NEW.published_from > before_until) THEN
        INSERT INTO public.publications (document_id, version, live_from)
        VALUES (NEW.document_id, NEW.version, NEW.published_from);
    ELSE
        RAISE restrict_violation USING MESSAGE = 'what was live in an edition is not rewritten';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER follow_publication AFTER INSERT OR UPDATE OF published_from, published_until ON document_versions
FOR EACH ROW EXECUTE FUNCTION follow_publication();

-- The edition whose state a rollback brought back; null for a publish.
ALTER TABLE editions ADD COLUMN rolled_back_to integer CHECK (rolled_back_to < corpus_version);
GRANT SELECT ON publications TO stacks_service;
"""

PURGES = """
CREATE TABLE purges (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    collection_id uuid NOT NULL REFERENCES collections,
    document_id uuid NOT NULL,
    version integer NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'purged', 'withdrawn')),
    requested_by text NOT NULL,
    -- The principal, and every agent that acted for it.
    requesters text[] NOT NULL CHECK (requested_by = ANY (requesters)),
    requested_at timestamptz NOT NULL DEFAULT now(),
    decided_by text,
    decided_at timestamptz,
    -- The transaction that deleted the rows, and when they were gone from the table's files too.
    deleted_in xid8,
    erased_at timestamptz,
    FOREIGN KEY (document_id, version) REFERENCES document_versions,
    CHECK ((status = 'pending') = (decided_by IS NULL) AND (decided_by IS NULL) = (decided_at IS NULL)),
    CHECK ((status = 'purged') = (deleted_in IS NOT NULL)),
    CHECK (status <> 'purged' OR decided_by <> ALL (requesters))
);
CREATE UNIQUE INDEX purges_pending ON purges (document_id, version) WHERE status = 'pending';
CREATE INDEX purges_by_collection ON purges (collection_id, id);
GRANT SELECT ON purges TO stacks_service;
GRANT INSERT (id, collection_id, document_id, version, reason, requested_by, requesters) ON purges TO stacks_service;
GRANT UPDATE (status, decided_by, decided_at, deleted_in) ON purges TO stacks_service;

ALTER TABLE document_versions DROP CONSTRAINT document_versions_state_check,
    ADD CONSTRAINT document_versions_state_check CHECK (state IN ('staged', 'draft', 'published', 'failed', 'purged'));

-- Whatever the service is made to do: no version is purged that is live, or without a purge that two people decided.
CREATE FUNCTION guard_purge() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF OLD.state = 'purged' THEN
        RAISE restrict_violation USING MESSAGE = 'a purged version stays purged';
    ELSIF NEW.state = 'purged' AND (
        (NEW.published_from IS NOT NULL AND NEW.published_until IS NULL)
        OR NOT EXISTS (SELECT FROM public.purges AS p WHERE p.document_id = NEW.document_id
                       AND p.version = NEW.version AND p.status = 'purged')
    ) THEN
        RAISE restrict_violation USING MESSAGE = 'a version is purged when it is not live and two people decided so';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_purge BEFORE UPDATE OF state, published_from, published_until ON document_versions
FOR EACH ROW EXECUTE FUNCTION guard_purge();

CREATE FUNCTION ticket_action() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT public.ticket_payload() ->> 'action'
$$;
REVOKE ALL ON FUNCTION follow_publication(), guard_purge(), ticket_action() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ticket_action() TO stacks_service;
"""

# What is read out of a version goes with its original: whoever deletes that need not be able to read any of it.
DERIVED = """
ALTER TABLE {table} DROP CONSTRAINT {table}_document_id_version_fkey,
    ADD CONSTRAINT {table}_document_id_version_fkey FOREIGN KEY (document_id, version) REFERENCES {parent} {then};
"""

# Of a column's values the planner keeps samples, which a purge would not reach. None of these is searched by value.
# Setting a column's type, even to the same one, drops the samples that there are.
UNSAMPLED = (
    ("originals", "content", "bytea"),
    ("document_texts", "content", "text"),
    ("document_texts", "pages", "jsonb"),
    ("document_texts", "headings", "jsonb"),
    ("chunks", "content", "text"),
    ("chunks", "heading_path", "text[]"),
    ("document_versions", "title", "text"),
)
UNSAMPLE = """
ALTER TABLE {table} ALTER COLUMN {column} TYPE {type};
ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS {target};
"""

CUSTODY = ("ingest", "publish", "manage")
# table, command: the actions a ticket may be for, before and now, and what else must hold.
# A purge's ticket shows no content but what is about to be deleted; nobody's deletes what has been published.
SHOWN_TO_PURGE = """
    AND ((SELECT ticket_action()) <> 'purge' OR EXISTS (
        SELECT FROM document_versions AS v
        WHERE v.document_id = originals.document_id AND v.version = originals.version AND v.state = 'purged'))
"""
DELETED = """
    AND EXISTS (
        SELECT FROM document_versions AS v
        WHERE v.document_id = originals.document_id AND v.version = originals.version
          AND (v.published_from IS NULL OR v.state = 'purged'))
"""
POLICIES = (
    ("documents", "select", ("search", "open", *CUSTODY), ("search", "open", *CUSTODY, "purge"), ""),
    ("document_versions", "select", ("search", "open", *CUSTODY), ("search", "open", *CUSTODY, "purge"), ""),
    ("document_versions", "update", CUSTODY, (*CUSTODY, "purge"), ""),
    ("originals", "select", ("open", "ingest"), ("open", "ingest", "purge"), SHOWN_TO_PURGE),
    ("originals", "delete", ("ingest",), ("ingest", "purge"), DELETED),
)

# The statistics forget a term whose last chunk has gone: a row that says 0 would tell that there had been one.
FORGET = """
    DELETE FROM public.class_terms AS kept
    USING (SELECT DISTINCT class_id, term FROM ({changes}) AS gone, unnest(terms) AS term) AS gone
    WHERE kept.frequency = 0 AND kept.class_id = gone.class_id AND kept.term = gone.term;
"""
FOLLOW = """
CREATE OR REPLACE FUNCTION follow_live_{event}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    WITH changes AS ({changes}),
    counted AS (
        SELECT class_id, term, sum(sign) AS change FROM changes, unnest(terms) AS term
        GROUP BY class_id, term HAVING sum(sign) <> 0
    )
    INSERT INTO public.class_terms AS kept (class_id, term, frequency)
    SELECT class_id, term, change FROM counted ORDER BY 1, 2
    ON CONFLICT (class_id, term) DO UPDATE SET frequency = kept.frequency + excluded.frequency;
    {forget}
    WITH changes AS ({changes}),
    counted AS (SELECT class_id, sum(sign) AS change FROM changes GROUP BY class_id HAVING sum(sign) <> 0)
    INSERT INTO public.class_sizes AS kept (class_id, chunks)
    SELECT class_id, change FROM counted ORDER BY 1
    ON CONFLICT (class_id) DO UPDATE SET chunks = kept.chunks + excluded.chunks;
    RETURN NULL;
END $$;
"""
LIVE = "SELECT class_id, terms, {sign} AS sign FROM {table} WHERE live_from IS NOT NULL AND live_until IS NULL"
CAME = LIVE.format(sign=1, table="came")
WENT = LIVE.format(sign=-1, table="went")
EVENTS = (
    ("insert", CAME, ""),
    ("update", f"{CAME} UNION ALL {WENT}", FORGET.format(changes=WENT)),
    ("delete", WENT, FORGET.format(changes=WENT)),
)


def _alter_policy(table: str, command: str, actions: tuple[str, ...], more: str = "") -> str:
    listed = ", ".join(f"'{action}'" for action in actions)
    test = f"class_id = ANY ((SELECT ticket_classes({listed}))::integer[]) {more}"
    check = f"WITH CHECK ({test})" if command == "update" else ""
    return f"ALTER POLICY {table}_{command} ON {table} USING ({test}) {check}"


def upgrade() -> None:
    op.execute(PUBLICATIONS)
    op.execute(PURGES)
    for table in ("document_texts", "chunks"):
        op.execute(DERIVED.format(table=table, parent="originals", then="ON DELETE CASCADE"))
    for table, column, kind in UNSAMPLED:
        op.execute(UNSAMPLE.format(table=table, column=column, type=kind, target=0))
    op.execute("ALTER TABLE class_terms ALTER COLUMN term SET STATISTICS 0")
    for table, command, _, now, more in POLICIES:
        op.execute(_alter_policy(table, command, now, more))
    for event, changes, forget in EVENTS:
        op.execute(FOLLOW.format(event=event, changes=changes, forget=forget))
    op.execute("DELETE FROM class_terms WHERE frequency = 0")


def downgrade() -> None:
    for event, changes, _ in EVENTS:
        op.execute(FOLLOW.format(event=event, changes=changes, forget=""))
    for table, command, before, _, _ in POLICIES:
        op.execute(_alter_policy(table, command, before))
    op.execute("ALTER TABLE class_terms ALTER COLUMN term SET STATISTICS -1")
    for table, column, kind in UNSAMPLED:
        op.execute(UNSAMPLE.format(table=table, column=column, type=kind, target=-1))
    for table in ("document_texts", "chunks"):
        op.execute(DERIVED.format(table=table, parent="document_versions", then=""))
    op.execute("DROP TRIGGER guard_purge ON document_versions")
    op.execute("DROP TRIGGER follow_publication ON document_versions")
    op.execute("DROP FUNCTION guard_purge(), follow_publication(), ticket_action()")
    op.execute("DROP TABLE purges, publications")
    op.execute("ALTER TABLE editions DROP COLUMN rolled_back_to")
    op.execute("""
        ALTER TABLE document_versions DROP CONSTRAINT document_versions_state_check,
            ADD CONSTRAINT document_versions_state_check CHECK (state IN ('staged', 'draft', 'published', 'failed'))
    """)
