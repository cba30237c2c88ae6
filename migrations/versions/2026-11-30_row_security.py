"""The service role, and row-level security: the second check, written apart from the compiled scope.

A transaction names its caller by a ticket, the setting `stacks.ticket`: `payload.signature`, where the payload is
JSON in base64 and the signature an HMAC-SHA256 (RFC 2104) whose key no login of the service can read. A ticket is
good for one action, in the one transaction it was made for, until it expires. No ticket, or one that is forged,
stale or made for another transaction, means no rows.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ROLE = """
DO $$ BEGIN
    CREATE ROLE stacks_service NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
"""

# The two halves of the key, already combined with the paddings of HMAC, so that a check is two hashes.
TICKETS = """
CREATE TABLE ticket_keys (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    inner_pad bytea NOT NULL CHECK (length(inner_pad) = 64),
    outer_pad bytea NOT NULL CHECK (length(outer_pad) = 64)
);

-- The verified payload, or null. Hashing both sides once more keeps the comparison from telling how much matched.
CREATE FUNCTION ticket_payload() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    ticket text := current_setting('stacks.ticket', true);
    body text := split_part(ticket, '.', 1);
    given bytea;
    payload jsonb;
BEGIN
    IF ticket IS NULL OR ticket !~ '^[A-Za-z0-9+/=]+\\.[0-9a-f]{64}$' THEN
        RETURN NULL;
    END IF;
    given := decode(split_part(ticket, '.', 2), 'hex');
    IF NOT EXISTS (
        SELECT FROM public.ticket_keys
        WHERE sha256(sha256(outer_pad || sha256(inner_pad || convert_to(body, 'UTF8')))) = sha256(given)
    ) THEN
        RETURN NULL;
    END IF;
    payload := convert_from(decode(body, 'base64'), 'UTF8')::jsonb;
    IF (payload ->> 'backend')::integer IS DISTINCT FROM pg_backend_pid()
        OR (payload ->> 'transaction')::numeric IS DISTINCT FROM extract(epoch FROM transaction_timestamp())
        OR NOT coalesce((payload ->> 'expires')::numeric > extract(epoch FROM clock_timestamp()), false)
    THEN
        RETURN NULL;
    END IF;
    RETURN payload;
END $$;

-- Whether the ticket of this transaction is good: so a service whose key is not ours is told so when it starts.
CREATE FUNCTION ticket_holds() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT public.ticket_payload() IS NOT NULL
$$;

-- Everything one party is, by transitive membership: {kind, name} pairs.
CREATE FUNCTION party_subjects(party jsonb) RETURNS TABLE (kind text, name text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH RECURSIVE member_of (kind, name) AS (
        SELECT 'principal', party ->> 'principal'
        UNION
        SELECT 'group', g FROM jsonb_array_elements_text(party -> 'groups') AS g
        UNION
        SELECT m.container_kind, m.container
        FROM member_of AS o JOIN public.memberships AS m ON (m.member_kind, m.member) = (o.kind, o.name)
        WHERE m.revoked_at IS NULL AND m.valid_from <= now() AND coalesce(m.valid_until > now(), true)
    )
    SELECT kind, name FROM member_of
$$;

-- The classes where one party has an allow and no deny for the action, within the bounds of its token.
CREATE FUNCTION party_classes(party jsonb, wanted text) RETURNS SETOF integer
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    WITH in_force AS MATERIALIZED (
        SELECT g.effect, g.resource_kind, g.collection_id, g.label, g.document_id
        FROM party_subjects(party) AS s
        JOIN public.grants AS g ON g.subject_kind = s.kind AND g.subject = s.name AND g.action = wanted
        WHERE g.revoked_at IS NULL AND g.valid_from <= now() AND coalesce(g.valid_until > now(), true)
    ),
    touched AS (
        SELECT c.id, f.effect
        FROM in_force AS f
        JOIN public.access_classes AS c ON CASE f.resource_kind
            WHEN 'system' THEN true
            WHEN 'collection' THEN c.collection_id = f.collection_id
            WHEN 'label' THEN c.collection_id = f.collection_id AND f.label = ANY (c.labels)
            WHEN 'document' THEN c.document_id = f.document_id
        END
    )
    SELECT t.id
    FROM touched AS t
    JOIN public.access_classes AS c USING (id)
    JOIN public.collections AS k ON k.id = c.collection_id
    WHERE (NOT party ? 'actions' OR party -> 'actions' ? wanted)
      AND (NOT party ? 'collections' OR party -> 'collections' ? k.slug)
    GROUP BY t.id
    HAVING bool_or(t.effect = 'allow') AND NOT bool_or(t.effect = 'deny')
$$;

-- What the row policies ask: the caller's classes if the ticket is for one of these actions. Once per statement.
CREATE FUNCTION ticket_classes(VARIADIC actions text[]) RETURNS integer[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    payload jsonb := public.ticket_payload();
    wanted text := payload ->> 'action';
    result integer[];
    party jsonb;
BEGIN
    IF payload IS NULL OR jsonb_array_length(payload -> 'parties') = 0 OR NOT (wanted = ANY (actions)) THEN
        RETURN '{}';
    END IF;
    FOR party IN SELECT jsonb_array_elements(payload -> 'parties') LOOP
        IF result IS NULL THEN
            result := ARRAY(SELECT public.party_classes(party, wanted));
        ELSE
            result := ARRAY(SELECT unnest(result) INTERSECT SELECT public.party_classes(party, wanted));
        END IF;
    END LOOP;
    RETURN coalesce(result, '{}');
END $$;
"""

# table: (command, actions a ticket may be for)
CUSTODY = ("ingest", "publish", "manage")
POLICIES = {
    "documents": (("SELECT", ("search", "open", *CUSTODY)), ("INSERT", ("ingest",)), ("UPDATE", CUSTODY)),
    "document_versions": (("SELECT", ("search", "open", *CUSTODY)), ("INSERT", ("ingest",)), ("UPDATE", CUSTODY)),
    "originals": (("SELECT", ("open", "ingest")), ("INSERT", ("ingest",)), ("DELETE", ("ingest",))),
    "document_texts": (("SELECT", ("search",)), ("INSERT", ("ingest",))),
    "chunks": (("SELECT", ("search",)), ("INSERT", ("ingest",))),
}

GRANTS = """
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO stacks_service;
GRANT SELECT ON policy_state, collections, access_classes, roles, memberships, grants, tokens, editions, documents,
    document_classes, document_versions, originals, document_texts, chunks, chunk_index, embedding_models, class_terms,
    class_sizes, calls, jobs TO stacks_service;
GRANT INSERT ON collections, access_classes, roles, memberships, grants, tokens, editions, documents,
    document_versions, originals, document_texts, chunks, chunk_index, embedding_models, calls, jobs TO stacks_service;
GRANT UPDATE (corpus_version, owner, purge_confirmer) ON collections TO stacks_service;
GRANT UPDATE (revoked_at, revoked_by) ON memberships, grants, tokens TO stacks_service;
GRANT UPDATE (class_id, title, tags, removed_at) ON documents TO stacks_service;
GRANT UPDATE (state, title, media_type, published_at, published_from, published_until)
    ON document_versions TO stacks_service;
GRANT UPDATE (live_from, live_until) ON chunk_index TO stacks_service;
GRANT UPDATE (status, progress, code, message, attempts, leased_until, finished_at) ON jobs TO stacks_service;
GRANT DELETE ON originals TO stacks_service;
GRANT EXECUTE ON FUNCTION ticket_classes(text[]), ticket_holds(), class_keys(integer, integer[]) TO stacks_service;
"""


def policy(table: str, command: str, actions: tuple[str, ...]) -> str:
    """One row policy. The sub-select makes the class list a value computed once, not once per row."""
    listed = ", ".join(f"'{action}'" for action in actions)
    test = f"class_id = ANY ((SELECT ticket_classes({listed}))::integer[])"
    clauses = {"INSERT": f"WITH CHECK ({test})", "UPDATE": f"USING ({test}) WITH CHECK ({test})"}
    clause = clauses.get(command, f"USING ({test})")
    return f"CREATE POLICY {table}_{command.lower()} ON {table} FOR {command} TO stacks_service {clause}"


def upgrade() -> None:
    op.execute(ROLE)
    op.execute(TICKETS)
    for table, rules in POLICIES.items():
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        for command, actions in rules:
            op.execute(policy(table, command, actions))
    op.execute(GRANTS)


def downgrade() -> None:
    for table, rules in POLICIES.items():
        for command, _ in rules:
            op.execute(f"DROP POLICY {table}_{command.lower()} ON {table}")
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY")
    op.execute("DROP FUNCTION ticket_classes(text[]), party_classes(jsonb, text), party_subjects(jsonb)")
    op.execute("DROP FUNCTION ticket_holds(), ticket_payload()")
    op.execute("DROP TABLE ticket_keys")
    op.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM stacks_service")
    op.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM stacks_service")
    op.execute("REVOKE ALL ON SCHEMA public FROM stacks_service")
    # The role stays where another database of the same server still uses it.
    op.execute("DO $$ BEGIN DROP ROLE stacks_service; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END $$")
