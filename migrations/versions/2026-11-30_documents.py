"""Documents, their versions, texts, originals, chunks and index rows."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DOCUMENTS = """
CREATE TABLE editions (
    collection_id uuid NOT NULL REFERENCES collections,
    corpus_version integer NOT NULL CHECK (corpus_version > 0),
    documents integer NOT NULL,
    published_by text NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (collection_id, corpus_version)
);

-- (id, class_id) is what every row with text refers to: moving a document to another access class is one UPDATE
-- here, and the foreign keys carry the move to each of its rows in the same statement.
CREATE TABLE documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    class_id integer NOT NULL REFERENCES access_classes,
    collection_id uuid NOT NULL REFERENCES collections,
    source_id text NOT NULL CHECK (length(source_id) BETWEEN 1 AND 500),
    title text NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    removed_at timestamptz,
    UNIQUE (id, class_id)
);
-- Not unique: whoever may not see a document must not learn from a refusal that its source id is taken.
CREATE INDEX documents_by_source ON documents (collection_id, source_id);

-- Which class a document was in, and since when: "who could search this on 3 March" is a query.
CREATE TABLE document_classes (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    class_id integer NOT NULL REFERENCES access_classes,
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX document_classes_by_document ON document_classes (document_id, since);
CREATE FUNCTION remember_class() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' OR NEW.class_id <> OLD.class_id THEN
        INSERT INTO public.document_classes (document_id, class_id) VALUES (NEW.id, NEW.class_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER remember_class AFTER INSERT OR UPDATE OF class_id ON documents
FOR EACH ROW EXECUTE FUNCTION remember_class();

-- state: staged (bytes stored, work to do), draft (indexed), published (has been), failed (see the job).
-- Searchable while published_from <= corpus version < published_until.
CREATE TABLE document_versions (
    document_id uuid NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    class_id integer NOT NULL,
    file_name text NOT NULL,
    title text,
    media_type text,
    content_sha256 text NOT NULL CHECK (content_sha256 ~ '^[0-9a-f]{64}$'),
    size bigint NOT NULL CHECK (size >= 0),
    state text NOT NULL DEFAULT 'staged' CHECK (state IN ('staged', 'draft', 'published', 'failed')),
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    published_from integer,
    published_until integer CHECK (published_until > published_from),
    PRIMARY KEY (document_id, version),
    FOREIGN KEY (document_id, class_id) REFERENCES documents (id, class_id) ON UPDATE CASCADE
);

CREATE TABLE originals (
    document_id uuid NOT NULL,
    version integer NOT NULL,
    class_id integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (document_id, version),
    FOREIGN KEY (document_id, version) REFERENCES document_versions,
    FOREIGN KEY (document_id, class_id) REFERENCES documents (id, class_id) ON UPDATE CASCADE
);
ALTER TABLE originals ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE document_texts (
    document_id uuid NOT NULL,
    version integer NOT NULL,
    class_id integer NOT NULL,
    content text NOT NULL,
    pages jsonb NOT NULL,
    headings jsonb NOT NULL,
    PRIMARY KEY (document_id, version),
    FOREIGN KEY (document_id, version) REFERENCES document_versions,
    FOREIGN KEY (document_id, class_id) REFERENCES documents (id, class_id) ON UPDATE CASCADE
);

CREATE TABLE chunks (
    id uuid PRIMARY KEY,
    document_id uuid NOT NULL,
    version integer NOT NULL,
    class_id integer NOT NULL,
    ordinal integer NOT NULL,
    char_start integer NOT NULL,
    char_end integer NOT NULL CHECK (char_end > char_start),
    page integer,
    heading_path text[] NOT NULL,
    content text NOT NULL,
    UNIQUE (document_id, version, ordinal),
    FOREIGN KEY (document_id, version) REFERENCES document_versions,
    FOREIGN KEY (document_id, class_id) REFERENCES documents (id, class_id) ON UPDATE CASCADE
);
"""

INDEX = """
CREATE TABLE embedding_models (
    id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    revision text NOT NULL,
    dimension integer NOT NULL,
    UNIQUE (name, revision)
);

-- The class leads every key, so the work done for a caller depends only on what the caller may see.
CREATE FUNCTION class_keys(class_id integer, terms integer[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT (class_id::bigint << 32) | t FROM unnest(terms) t);

-- No readable text. Live (in the present edition) while live_from is set and live_until is not.
CREATE TABLE chunk_index (
    chunk_id uuid PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    document_id uuid NOT NULL,
    version integer NOT NULL,
    class_id integer NOT NULL,
    live_from integer,
    live_until integer CHECK (live_until > live_from),
    model_id smallint NOT NULL REFERENCES embedding_models,
    embedding halfvec(384) NOT NULL,
    length integer NOT NULL,
    terms integer[] NOT NULL,
    weights sparsevec(1000000000) NOT NULL,
    keys bigint[] GENERATED ALWAYS AS (class_keys(class_id, terms)) STORED,
    FOREIGN KEY (document_id, class_id) REFERENCES documents (id, class_id) ON UPDATE CASCADE
);
-- What the planner learns about these columns would tell hidden terms to whoever reads the statistics.
ALTER TABLE chunk_index ALTER COLUMN embedding SET STATISTICS 0, ALTER COLUMN terms SET STATISTICS 0,
    ALTER COLUMN weights SET STATISTICS 0, ALTER COLUMN keys SET STATISTICS 0;
CREATE INDEX chunk_index_by_class ON chunk_index (class_id) WHERE live_from IS NOT NULL AND live_until IS NULL;
CREATE INDEX chunk_index_by_key ON chunk_index USING gin (keys) WITH (fastupdate = off)
    WHERE live_from IS NOT NULL AND live_until IS NULL;
CREATE INDEX chunk_index_by_document ON chunk_index (document_id, version);

CREATE TABLE class_terms (
    class_id integer NOT NULL REFERENCES access_classes,
    term integer NOT NULL,
    frequency integer NOT NULL,
    PRIMARY KEY (class_id, term) INCLUDE (frequency)
);
CREATE TABLE class_sizes (
    class_id integer PRIMARY KEY REFERENCES access_classes,
    chunks integer NOT NULL
);
"""

# The statistics follow the index rows by themselves: publish, rollback, purge and a move between classes are all
# just changes of rows, and a sum over classes never counts what is not live.
FOLLOW = """
CREATE FUNCTION follow_live_{event}() RETURNS trigger
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

    WITH changes AS ({changes}),
    counted AS (SELECT class_id, sum(sign) AS change FROM changes GROUP BY class_id HAVING sum(sign) <> 0)
    INSERT INTO public.class_sizes AS kept (class_id, chunks)
    SELECT class_id, change FROM counted ORDER BY 1
    ON CONFLICT (class_id) DO UPDATE SET chunks = kept.chunks + excluded.chunks;
    RETURN NULL;
END $$;

CREATE TRIGGER follow_live_{event} AFTER {event} ON chunk_index REFERENCING {tables}
FOR EACH STATEMENT EXECUTE FUNCTION follow_live_{event}();
"""
LIVE = "SELECT class_id, terms, {sign} AS sign FROM {table} WHERE live_from IS NOT NULL AND live_until IS NULL"
CAME = LIVE.format(sign=1, table="came")
WENT = LIVE.format(sign=-1, table="went")
EVENTS = (
    ("insert", CAME, "NEW TABLE AS came"),
    ("update", f"{CAME} UNION ALL {WENT}", "NEW TABLE AS came OLD TABLE AS went"),
    ("delete", WENT, "OLD TABLE AS went"),
)


def upgrade() -> None:
    op.execute(DOCUMENTS)
    op.execute(INDEX)
    for event, changes, tables in EVENTS:
        op.execute(FOLLOW.format(event=event, changes=changes, tables=tables))


def downgrade() -> None:
    op.execute("DROP TABLE class_sizes, class_terms, chunk_index, embedding_models")
    op.execute("DROP TABLE chunks, document_texts, originals, document_versions, document_classes, documents")
    op.execute("DROP TABLE editions")
    op.execute("DROP FUNCTION remember_class()")
    op.execute("DROP FUNCTION class_keys(integer, integer[])")
    for event, _, _ in EVENTS:
        op.execute(f"DROP FUNCTION follow_live_{event}()")
