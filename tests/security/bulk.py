"""Tens of thousands of chunks in seconds: the rows that ingest would write, written straight into its tables."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
from pgvector import HalfVector, SparseVector
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb

from app.analysis import bm25
from app.analysis.embedder import Embedder
from app.analysis.terms import document_terms
from app.ingest.index import DIMENSIONS, chunk_id

WORDS_OF_A_CHUNK = 60
CHUNKS_OF_A_DOCUMENT = 10
_NOW = datetime(2026, 11, 30, tzinfo=UTC)
_NONE = Jsonb([])
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True, slots=True)
class Shelf:
    """The documents of one access class, every one published in edition 1.

    `marks` are words strewn over its chunks: the word, and the share (0..1) of chunks that hold it.
    """

    collection: UUID
    class_id: int
    chunks: int
    marks: dict[str, float] = field(default_factory=dict)


def invented(rng: random.Random, count: int, syllables: int = 4) -> list[str]:
    """`count` distinct words that no language has, all of one length."""
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(rng.choices(_SYLLABLES, k=syllables))] = None
    return list(found)


class Filler:
    """Fills shelves from one vocabulary, whose words are used as in a natural text: few of them often, most seldom."""

    def __init__(self, connection: psycopg.Connection[Any], embedder: Embedder, vocabulary: Sequence[str]) -> None:
        register_vector(connection)
        self._connection = connection
        self._embedder = embedder
        self._words = vocabulary
        self._odds = [1 / (rank + 3) for rank in range(len(vocabulary))]
        self._rng = random.Random(20261130)
        self._vectors = np.random.default_rng(20261130)
        self._terms: dict[str, list[int]] = {}

    def fill(self, shelf: Shelf) -> list[UUID]:
        """Write a shelf's documents; their ids."""
        documents = [uuid4() for _ in range(shelf.chunks // CHUNKS_OF_A_DOCUMENT)]
        texts = {document: list(self._texts(shelf)) for document in documents}
        with self._connection.transaction():
            self._copy_documents(shelf, texts)
            self._copy_chunks(shelf, texts)
        return documents

    def shelf(self, slug: str, label: str, chunks: int, marks: dict[str, float] | None = None) -> Shelf:
        """The shelf of one label of a collection; its access class is made if need be."""
        self._connection.execute(
            "INSERT INTO access_classes (collection_id, labels) SELECT id, ARRAY[%s] FROM collections WHERE slug = %s "
            "ON CONFLICT DO NOTHING",
            (label, slug),
        )
        found = self._connection.execute(
            "SELECT a.collection_id, a.id FROM access_classes a JOIN collections k ON k.id = a.collection_id "
            "WHERE k.slug = %s AND a.labels = ARRAY[%s]",
            (slug, label),
        ).fetchone()
        assert found is not None
        return Shelf(found[0], found[1], chunks, marks or {})

    def settle(self) -> None:
        """Bring collections to edition 1, and the planner up to date."""
        self._connection.execute("UPDATE collections SET corpus_version = 1")
        self._connection.execute("""
            INSERT INTO editions (collection_id, corpus_version, documents, published_by)
            SELECT id, 1, 0, owner FROM collections ON CONFLICT DO NOTHING
        """)
        self._connection.execute("VACUUM ANALYZE")

    def _texts(self, shelf: Shelf) -> Iterator[str]:
        for _ in range(CHUNKS_OF_A_DOCUMENT):
            words = self._rng.choices(self._words, self._odds, k=WORDS_OF_A_CHUNK)
            words += [mark for mark, share in shelf.marks.items() if self._rng.random() < share]
            yield " ".join(words)

    def _copy(self, table: str, columns: str, types: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> None:
        statement = f"COPY {table} ({columns}) FROM STDIN WITH (FORMAT binary)"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(list(types))
            for row in rows:
                copy.write_row(row)

    def _copy_documents(self, shelf: Shelf, texts: dict[UUID, list[str]]) -> None:
        self._copy(
            "documents",
            "id, class_id, collection_id, source_id, title, created_by",
            ("uuid", "int4", "uuid", "text", "text", "text"),
            ((one, shelf.class_id, shelf.collection, f"{one}.txt", str(one), "owner") for one in texts),
        )
        wholes = {document: "\n".join(parts) for document, parts in texts.items()}
        self._copy(
            "document_versions",
            "document_id, version, class_id, file_name, media_type, content_sha256, size, state, created_by, "
            "published_at, published_from",
            ("uuid", "int4", "int4", "text", "text", "text", "int8", "text", "text", "timestamptz", "int4"),
            (
                (
                    *(one, 1, shelf.class_id, f"{one}.txt", "text/plain", _sha(whole), len(whole)),
                    *("published", "owner", _NOW, 1),
                )
                for one, whole in wholes.items()
            ),
        )
        self._copy(
            "originals",
            "document_id, version, class_id, content",
            ("uuid", "int4", "int4", "bytea"),
            ((one, 1, shelf.class_id, whole.encode()) for one, whole in wholes.items()),
        )
        self._copy(
            "document_texts",
            "document_id, version, class_id, content, pages, headings",
            ("uuid", "int4", "int4", "text", "jsonb", "jsonb"),
            ((one, 1, shelf.class_id, whole, _NONE, _NONE) for one, whole in wholes.items()),
        )
        self._copy(
            "jobs",
            "collection_id, document_id, version, requested_by, status, progress",
            ("uuid", "uuid", "int4", "jsonb", "text", "float4"),
            ((shelf.collection, one, 1, _NONE, "done", 1.0) for one in texts),
        )

    def _copy_chunks(self, shelf: Shelf, texts: dict[UUID, list[str]]) -> None:
        numbered = [
            (document, place, text) for document, parts in texts.items() for place, text in enumerate(parts, start=1)
        ]
        self._copy(
            "chunks",
            "id, document_id, version, class_id, ordinal, char_start, char_end, heading_path, content",
            ("uuid", "uuid", "int4", "int4", "int4", "int4", "int4", "text[]", "text"),
            (
                (chunk_id(one, 1, place), one, 1, shelf.class_id, place, 0, len(text), [], text)
                for one, place, text in numbered
            ),
        )
        self._copy(
            "chunk_index",
            "chunk_id, document_id, version, class_id, live_from, model_id, embedding, length, terms, weights",
            ("uuid", "uuid", "int4", "int4", "int4", "int2", "halfvec", "int4", "int4[]", "sparsevec"),
            self._index_rows(shelf, numbered, self._model()),
        )

    def _index_rows(self, shelf: Shelf, numbered: list[tuple[UUID, int, str]], model: int) -> Iterator[tuple[Any, ...]]:
        for document, place, text in numbered:
            terms = [term for word in text.split(" ") for term in self._terms_of(word)]
            weights = bm25.weights(terms)
            vector = self._vectors.normal(size=self._embedder.dimension).astype(np.float32)
            vector /= np.linalg.norm(vector)
            yield (
                *(chunk_id(document, 1, place), document, 1, shelf.class_id, 1, model),
                *(HalfVector(vector), len(terms), sorted(weights), SparseVector(weights, DIMENSIONS)),
            )

    def _terms_of(self, word: str) -> list[int]:
        if word not in self._terms:
            self._terms[word] = document_terms(word)
        return self._terms[word]

    def _model(self) -> int:
        model = self._embedder
        self._connection.execute(
            "INSERT INTO embedding_models (name, revision, dimension) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (model.name, model.revision, model.dimension),
        )
        found = self._connection.execute("SELECT id FROM embedding_models").fetchone()
        assert found is not None
        return int(found[0])


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
