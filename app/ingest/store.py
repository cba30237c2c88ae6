"""First stage: the bytes of an upload are stored and a job is queued, in one transaction."""

import hashlib
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text

from app.authz import classes
from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import LABEL, AccessClass, Action
from app.domain.principal import Principal
from app.errors import Denied, FileTooLarge, InvalidRequest
from app.ingest import jobs

LABELS_MAX = 16

# One upload at a time for one source of one collection, so that two at once cannot become two documents.
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:collection || :source, 0))")
_BY_SOURCE = text("""
    SELECT d.id, a.labels, d.removed_at FROM documents d JOIN access_classes a ON a.id = d.class_id
    WHERE d.collection_id = :collection AND d.source_id = :source
    ORDER BY d.created_at, d.id LIMIT 1
""")
# Two may have one source id: somebody who did not see the first has made the second. The first is the one.

_LATEST = text("SELECT max(version) FROM document_versions WHERE document_id = :document")
# What the next edition would hold of a document as things stand: the newest draft, or else what is live.
_CURRENT = text("""
    SELECT v.content_sha256, j.id AS job_id, j.status
    FROM document_versions v JOIN jobs j USING (document_id, version)
    WHERE v.document_id = :document
      AND ((v.published_from IS NOT NULL AND v.published_until IS NULL)
           OR (v.state IN ('staged', 'draft')
               AND v.version > coalesce((SELECT max(p.version) FROM document_versions p
                                         WHERE p.document_id = :document AND p.published_from IS NOT NULL), 0)))
    ORDER BY v.version DESC LIMIT 1
""")
_SAME_BYTES = text("""
    SELECT d.id FROM documents d JOIN access_classes a ON a.id = d.class_id
    JOIN document_versions v ON v.document_id = d.id
    WHERE d.collection_id = :collection AND v.content_sha256 = :sha AND a.labels = CAST(:labels AS text[])
      AND d.removed_at IS NULL
      AND (v.state IN ('staged', 'draft') OR (v.published_from IS NOT NULL AND v.published_until IS NULL))
      AND NOT EXISTS (SELECT FROM document_versions l WHERE l.document_id = d.id AND l.version > v.version
                      AND l.state IN ('staged', 'draft'))
    ORDER BY d.created_at, d.id LIMIT 1
""")
_DOCUMENT = text("""
    INSERT INTO documents (id, class_id, collection_id, source_id, title, tags, created_by)
    VALUES (:id, :class_id, :collection, :source, :title, CAST(:tags AS text[]), :by)
""")
_REVIVE = text("UPDATE documents SET removed_at = NULL WHERE id = :document AND removed_at IS NOT NULL")
_CLASS_OF = text("SELECT class_id FROM documents WHERE id = :document FOR UPDATE")
_VERSION = text("""
    INSERT INTO document_versions (document_id, version, class_id, file_name, title, content_sha256, size, created_by)
    VALUES (:document, :version, :class_id, :file_name, :title, :sha, :size, :by)
""")
_ORIGINAL = text("""
    INSERT INTO originals (document_id, version, class_id, content) VALUES (:document, :version, :class_id, :content)
""")


@dataclass(frozen=True, slots=True)
class Upload:
    """One file as it came. `source_id` is what makes a later upload another version of the same document."""

    file_name: str
    content: bytes = field(repr=False)
    title: str | None = None
    source_id: str | None = None
    labels: tuple[str, ...] | None = None
    tags: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The given source id, or the file's name."""
        return self.source_id or self.file_name


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of an upload: the job that takes it further, or the one that has taken the same bytes already."""

    job_id: UUID
    document_id: UUID
    status: str
    dedup_hit: bool


async def store(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    slug: str,
    upload: Upload,
    *,
    size_max: int,
) -> Receipt:
    """Keep an upload's bytes and queue its job.

    Raises `InvalidRequest`, `FileTooLarge`, `NotFound` or `Denied` where `by` may not ingest.
    """
    check(upload, size_max)
    collection = await require(authority, transaction, by, Action.INGEST, slug)
    await transaction.connection.execute(_LOCK, {"collection": slug, "source": upload.source})
    await printer.present(transaction, by, Action.INGEST)
    values = {"collection": collection.id, "source": upload.source}
    found = (await transaction.connection.execute(_BY_SOURCE, values)).one_or_none()
    sha = hashlib.sha256(upload.content).hexdigest()
    if (known := await _known(transaction, collection.id, upload, sha, found)) is not None:
        return known
    document = await _document(transaction, authority, by, collection.id, upload, found)
    return await _version(transaction, by, collection.id, document, upload, sha)


def check(upload: Upload, size_max: int) -> None:
    """Raise `InvalidRequest` or `FileTooLarge` for what no collection would take."""
    if len(upload.content) > size_max:
        raise FileTooLarge(f"{upload.file_name}: larger than {size_max} bytes.", details={"max": size_max})
    if (
        not upload.file_name.strip()
        or len(upload.file_name) > 255
        or PurePath(upload.file_name).name != upload.file_name
    ):
        raise InvalidRequest("file_name", "not a plain file name", allowed="1..255 characters without a path")
    for field_name, value in (
        ("file_name", upload.file_name),
        ("source_id", upload.source_id),
        ("title", upload.title),
    ):
        if value is not None and any(character < " " or character == "\x7f" for character in value):
            raise InvalidRequest(field_name, "holds control characters", allowed="one line of text")
    for field_name, value, most in (("source_id", upload.source_id, 500), ("title", upload.title, 300)):
        if value is not None and not (value.strip() and len(value) <= most):
            raise InvalidRequest(field_name, "empty or too long", allowed=f"1..{most} characters")
    for field_name, words in (("labels", upload.labels or ()), ("tags", upload.tags)):
        if len(words) > LABELS_MAX or any(LABEL.fullmatch(word) is None for word in words):
            raise InvalidRequest(field_name, "not a list of words", allowed=f"up to {LABELS_MAX} of a-z, 0-9, . _ -")


async def _known(transaction: Transaction, collection: UUID, upload: Upload, sha: str, found: Any) -> Receipt | None:
    """The receipt of the same bytes under the same labels, if they are here already."""
    labels = sorted(set(upload.labels or ()))
    document = found.id if found is not None and found.removed_at is None else None
    if found is None and upload.source_id is None:
        values = {"collection": collection, "sha": sha, "labels": labels}
        document = (await transaction.connection.execute(_SAME_BYTES, values)).scalar_one_or_none()
    if document is None or (found is not None and upload.labels is not None and labels != list(found.labels)):
        return None
    current = (await transaction.connection.execute(_CURRENT, {"document": document})).one_or_none()
    if current is None or current.content_sha256 != sha:
        return None
    return Receipt(current.job_id, document, current.status, dedup_hit=True)


async def _document(
    transaction: Transaction, authority: Authority, by: Principal, collection: UUID, upload: Upload, found: Any
) -> UUID:
    """The document that the upload belongs to: the one with its source id, or a new one."""
    if found is not None:
        await _relabel(transaction, authority, by, collection, upload, found)
        await transaction.connection.execute(_REVIVE, {"document": found.id})
        return UUID(str(found.id))
    own = await classes.ensure(transaction, collection, upload.labels or ())
    await _require_cover(transaction, authority, by, Action.INGEST, own)
    id_ = uuid4()
    values = {
        "id": id_,
        "class_id": own.id,
        "collection": collection,
        "source": upload.source,
        "title": upload.title or PurePath(upload.file_name).stem,
        "tags": list(upload.tags),
        "by": by.key,
    }
    await transaction.connection.execute(_DOCUMENT, values)
    return id_


async def _relabel(
    transaction: Transaction, authority: Authority, by: Principal, collection: UUID, upload: Upload, found: Any
) -> None:
    """Labels given with a new version replace the document's. They change who may read it, so they need `manage`.

    A document with rules of its own keeps them: its new class is its own too.
    """
    present = await classes.held(transaction, found.id)
    if present is None or upload.labels is None or sorted(set(upload.labels)) == list(present.labels):
        return
    target = await classes.ensure(transaction, collection, upload.labels, present.document_id)
    await _require_cover(transaction, authority, by, Action.MANAGE, target)
    await classes.move(transaction, found.id, target)


async def _require_cover(
    transaction: Transaction, authority: Authority, by: Principal, action: Action, access_class: AccessClass
) -> None:
    if not classes.covers(await authority.compile(transaction, by, action), access_class):
        raise Denied


async def _version(
    transaction: Transaction, by: Principal, collection: UUID, document: UUID, upload: Upload, sha: str
) -> Receipt:
    class_id = (await transaction.connection.execute(_CLASS_OF, {"document": document})).scalar_one()
    latest = (await transaction.connection.execute(_LATEST, {"document": document})).scalar_one()
    values = {
        "document": document,
        "collection": collection,
        "version": (latest or 0) + 1,
        "class_id": class_id,
        "file_name": upload.file_name,
        "title": upload.title,
        "sha": sha,
        "size": len(upload.content),
    }
    await transaction.connection.execute(_VERSION, {**values, "by": by.key})
    await transaction.connection.execute(_ORIGINAL, {**values, "content": upload.content})
    await jobs.forget_failed(transaction, document)
    job = uuid4()
    await jobs.queue(transaction, by, job, collection, document, values["version"], len(upload.content))
    return Receipt(job, document, "queued", dedup_hit=False)
