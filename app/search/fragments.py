"""From chunk ids to fragments: the text, read under row-level security and checked once more through Casbin."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Row, text

from app.authz.check import still_permits
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import AccessClass, AccessScope
from app.domain.documents import Fragment
from app.errors import InternalError

log = structlog.get_logger()

_READ = text("""
    SELECT c.id AS chunk_id, c.document_id, c.version, c.char_start, c.char_end, c.page, c.heading_path, c.content,
           coalesce(v.title, d.title) AS title, v.media_type, v.content_sha256, v.published_at,
           v.published_until IS NOT NULL AS superseded, k.slug, k.corpus_version,
           a.id AS class_id, a.collection_id, a.labels, a.document_id AS own_document
    FROM chunks c
    JOIN documents d ON d.id = c.document_id
    JOIN document_versions v ON v.document_id = c.document_id AND v.version = c.version
    JOIN access_classes a ON a.id = d.class_id
    JOIN collections k ON k.id = a.collection_id
    WHERE c.id = ANY(:chunks) AND v.published_from IS NOT NULL
""")


async def read(
    transaction: Transaction,
    scope: AccessScope,
    printer: TicketPrinter,
    ranked: Sequence[tuple[UUID, float]],
    base_url: str,
) -> tuple[Fragment, ...]:
    """The fragments of `ranked` (chunk id, score), in that order.

    Raises `InternalError`, with an alarm, when row-level security or Casbin would not give what the scope found:
    three checks that disagree mean that one of them is broken.
    """
    await printer.present(transaction, scope.principal, scope.action)
    rows = await transaction.connection.execute(_READ, {"chunks": [chunk for chunk, _ in ranked]})
    by_chunk = {row.chunk_id: row for row in rows}
    if len(by_chunk) != len(ranked):
        raise disagreement("row-level security", len(ranked) - len(by_chunk))
    refused = sum(not _permitted(scope, row) for row in _one_of_each_document(by_chunk.values()))
    if refused:
        raise disagreement("casbin", refused)
    return tuple(_fragment(by_chunk[chunk], score, base_url) for chunk, score in ranked)


def disagreement(check: str, documents: int) -> InternalError:
    """Sound the alarm: `check` refused what the scope had permitted. The caller learns nothing of it."""
    log.critical("ALARM: the permission checks disagree", refused_by=check, rows=documents)
    return InternalError()


def _one_of_each_document(rows: Iterable[Row[Any]]) -> list[Row[Any]]:
    return list({row.document_id: row for row in rows}.values())


def _permitted(scope: AccessScope, row: Row[Any]) -> bool:
    own = AccessClass(row.class_id, row.collection_id, tuple(row.labels), row.own_document)
    return still_permits(scope, row.slug, own)


def _fragment(row: Row[Any], score: float, base_url: str) -> Fragment:
    place = f"{row.document_id}/versions/{row.version}?start={row.char_start}&end={row.char_end}"
    return Fragment(
        document_id=row.document_id,
        document_version=row.version,
        corpus_version=f"{row.slug}@{row.corpus_version}",
        collection=row.slug,
        title=row.title,
        text=row.content,
        source_uri=f"{base_url}/documents/{place}",
        media_type=row.media_type,
        page=row.page,
        heading_path=tuple(row.heading_path),
        char_start=row.char_start,
        char_end=row.char_end,
        content_sha256=row.content_sha256,
        published_at=row.published_at,
        superseded=row.superseded,
        chunk_id=row.chunk_id,
        score=score,
    )
