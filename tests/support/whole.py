"""What must hold in a database at any moment, whoever was killed before: looked at from behind the scenes."""

from support.postgres import RunDatabase

LIVE = "live_from IS NOT NULL AND live_until IS NULL"

# Each query finds what must not be; in a sound database every one finds nothing.
FAULTS = {
    "an edition that the collection does not know, or the reverse": """
        SELECT k.slug FROM collections k LEFT JOIN editions e ON e.collection_id = k.id GROUP BY k.id
        HAVING k.corpus_version <> count(e.*) OR k.corpus_version <> coalesce(max(e.corpus_version), 0)""",
    "a version beyond the present edition": """
        SELECT v.document_id FROM document_versions v JOIN documents d ON d.id = v.document_id
        JOIN collections k ON k.id = d.collection_id
        WHERE v.published_from > k.corpus_version OR v.published_until > k.corpus_version""",
    "two live versions of one document": """
        SELECT document_id FROM document_versions WHERE published_from IS NOT NULL AND published_until IS NULL
        GROUP BY 1 HAVING count(*) > 1""",
    "a version half-written": """
        SELECT v.document_id FROM document_versions v
        LEFT JOIN document_texts t USING (document_id, version)
        LEFT JOIN LATERAL (SELECT count(*) AS n, max(ordinal) AS last FROM chunks c
                           WHERE c.document_id = v.document_id AND c.version = v.version) c ON true
        LEFT JOIN LATERAL (SELECT count(*) AS n FROM chunk_index i
                           WHERE i.document_id = v.document_id AND i.version = v.version) i ON true
        WHERE (v.state IN ('draft', 'published')) <> (t.document_id IS NOT NULL)
           OR (v.state IN ('draft', 'published')) <> (c.n > 0) OR c.n <> i.n OR c.n <> coalesce(c.last + 1, 0)""",
    "a version without its job, or against it": """
        SELECT v.document_id FROM document_versions v LEFT JOIN jobs j USING (document_id, version)
        WHERE j.status IS NULL OR (v.state IN ('draft', 'published', 'purged')) <> (j.status = 'done')
           OR (v.state = 'failed') <> (j.status IN ('failed', 'cancelled'))""",
    "a job that nobody will be brought, or one that has ended and will be": """
        SELECT j.id FROM jobs j FULL JOIN procrastinate.procrastinate_jobs p ON p.id = j.delivery
        WHERE p.status::text IS DISTINCT FROM CASE j.status WHEN 'queued' THEN 'todo' WHEN 'running' THEN 'doing' END
           OR p.args ->> 'job' IS DISTINCT FROM CASE WHEN p.id IS NOT NULL THEN j.id::text END""",
    "an index row that is not live with its version": """
        SELECT i.chunk_id FROM chunk_index i JOIN document_versions v USING (document_id, version)
        WHERE (i.live_from, i.live_until) IS DISTINCT FROM (v.published_from, v.published_until)""",
    "a version whose last publication is not the one it says": """
        SELECT v.document_id FROM document_versions v FULL JOIN (
            SELECT DISTINCT ON (document_id, version) * FROM publications ORDER BY document_id, version, live_from DESC
        ) p USING (document_id, version)
        WHERE (v.published_from, v.published_until) IS DISTINCT FROM (p.live_from, p.live_until)""",
    "a document live twice in one edition": """
        SELECT a.document_id FROM publications a JOIN publications b USING (document_id)
        WHERE a.live_from < b.live_from AND coalesce(a.live_until > b.live_from, true)""",
    "a purged version that left something": """
        SELECT v.document_id FROM document_versions v
        WHERE v.state = 'purged' AND (
            v.title IS NOT NULL OR EXISTS (SELECT FROM originals o
                WHERE o.document_id = v.document_id AND o.version = v.version))""",
    "a term counted wrongly": f"""
        SELECT class_id, term, count(*) FROM chunk_index, unnest(terms) AS term WHERE {LIVE} GROUP BY 1, 2
        EXCEPT SELECT class_id, term, frequency FROM class_terms""",
    "a term that is not there": f"""
        SELECT class_id, term, frequency FROM class_terms
        EXCEPT SELECT class_id, term, count(*) FROM chunk_index, unnest(terms) AS term WHERE {LIVE} GROUP BY 1, 2""",
    "a class sized wrongly": f"""
        SELECT s.class_id FROM class_sizes s
        WHERE s.chunks <> (SELECT count(*) FROM chunk_index i WHERE i.class_id = s.class_id AND {LIVE})""",
    "a class without a size": f"""
        SELECT class_id FROM chunk_index WHERE {LIVE} EXCEPT SELECT class_id FROM class_sizes""",
    "a chunk that its text does not hold": """
        SELECT c.id FROM chunks c JOIN document_texts t USING (document_id, version)
        WHERE substr(t.content, c.char_start + 1, c.char_end - c.char_start) <> c.content""",
}


def assert_whole(database: RunDatabase) -> None:
    """AssertionError that names what is wrong."""
    with database.superuser() as connection:
        found = {name: connection.execute(query.encode()).fetchall() for name, query in FAULTS.items()}
    assert {name: rows for name, rows in found.items() if rows} == {}
