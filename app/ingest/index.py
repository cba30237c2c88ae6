"""Last stage before publishing: text, chunks, vectors and terms are written together, as a draft nobody can find."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector
from sqlalchemy import text

from app.analysis import bm25
from app.analysis.terms import document_terms
from app.db.session import Transaction
from app.domain.documents import Chunk, ExtractedText

DIMENSIONS = 1_000_000_000

_MODEL = text("""
    INSERT INTO embedding_models (name, revision, dimension) VALUES (:name, :revision, :dimension)
    ON CONFLICT DO NOTHING
""")
_MODEL_ID = text("SELECT id FROM embedding_models WHERE name = :name AND revision = :revision")
_STAGED = text("""
    SELECT class_id FROM document_versions
    WHERE document_id = :document AND version = :version AND state = 'staged' FOR UPDATE
""")
_TEXT = text("""
    INSERT INTO document_texts (document_id, version, class_id, content, pages, headings)
    VALUES (:document, :version, :class_id, :content, CAST(:pages AS jsonb), CAST(:headings AS jsonb))
""")
_CHUNK = text("""
    INSERT INTO chunks (id, document_id, version, class_id, ordinal, char_start, char_end, page, heading_path, content)
    VALUES (:id, :document, :version, :class_id, :ordinal, :char_start, :char_end, :page,
            CAST(:heading_path AS text[]), :content)
""")
_INDEX = text("""
    INSERT INTO chunk_index (chunk_id, document_id, version, class_id, model_id, embedding, length, terms, weights)
    VALUES (:id, :document, :version, :class_id, :model, :embedding, :length, CAST(:terms AS integer[]), :weights)
""")
_DRAFT = text("""
    UPDATE document_versions SET state = 'draft', media_type = :media_type, title = coalesce(title, :title)
    WHERE document_id = :document AND version = :version
""")


@dataclass(frozen=True, slots=True)
class Model:
    """Which model made a vector: vectors of different models are never compared."""

    name: str
    revision: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Indexed:
    """A chunk with its vector (shape (dimension,), float32, normalised)."""

    chunk: Chunk
    vector: NDArray[np.float32]


async def write(
    transaction: Transaction,
    document: UUID,
    version: int,
    extracted: ExtractedText,
    indexed: Sequence[Indexed],
    model: Model,
) -> bool:
    """Write a staged version as a draft, whole or not at all; False when it is not staged (any more) or not ours."""
    key = {"document": document, "version": version}
    class_id = (await transaction.connection.execute(_STAGED, key)).scalar_one_or_none()
    if class_id is None:
        return False
    key["class_id"] = class_id
    await transaction.connection.execute(_TEXT, {**key, **_text(extracted)})
    model_id = await _model_id(transaction, model)
    if indexed:
        await transaction.connection.execute(
            _CHUNK, [{**key, **_chunk(document, version, one.chunk)} for one in indexed]
        )
        rows = [{**key, "model": model_id, **_index(document, version, one)} for one in indexed]
        await transaction.connection.execute(_INDEX, rows)
    await transaction.connection.execute(_DRAFT, {**key, "media_type": extracted.media_type, "title": extracted.title})
    return True


async def _model_id(transaction: Transaction, model: Model) -> int:
    values = {"name": model.name, "revision": model.revision, "dimension": model.dimension}
    await transaction.connection.execute(_MODEL, values)
    return int((await transaction.connection.execute(_MODEL_ID, values)).scalar_one())


def chunk_id(document: UUID, version: int, ordinal: int) -> UUID:
    """A chunk's id follows from its place, so that indexing again gives the same ids and the same order of ties."""
    return uuid5(document, f"{version}/{ordinal}")


def _text(extracted: ExtractedText) -> dict[str, str]:
    pages = [[span.page, span.char_start, span.char_end] for span in extracted.pages]
    headings = [[heading.level, heading.title, heading.char_start] for heading in extracted.headings]
    return {"content": extracted.text, "pages": json.dumps(pages), "headings": json.dumps(headings)}


def _chunk(document: UUID, version: int, chunk: Chunk) -> dict[str, object]:
    return {
        "id": chunk_id(document, version, chunk.ordinal),
        "ordinal": chunk.ordinal,
        "char_start": chunk.char_start,
        "char_end": chunk.char_end,
        "page": chunk.page,
        "heading_path": list(chunk.heading_path),
        "content": chunk.text,
    }


def _index(document: UUID, version: int, one: Indexed) -> dict[str, object]:
    terms = document_terms(one.chunk.text)
    weights = bm25.weights(terms)
    return {
        "id": chunk_id(document, version, one.chunk.ordinal),
        "embedding": HalfVector(one.vector),
        "length": len(terms),
        "terms": sorted(weights),
        "weights": SparseVector(weights, DIMENSIONS),
    }
