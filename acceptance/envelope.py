"""The published shape of a `search_documents` answer, read strictly: a field nobody promised is a fault."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Edition = Annotated[str, msgspec.Meta(pattern=r"^[^@\s]+@[1-9][0-9]*\Z")]
Slug = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Ordinal = Annotated[int, msgspec.Meta(ge=1)]


class Fragment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One cited piece of one document version; offsets are code points of the extracted text, end exclusive."""

    document_id: Id
    document_version: Ordinal
    corpus_version: Edition
    collection: Slug
    title: str
    text: str
    source_uri: str
    media_type: str
    page: Ordinal | None
    heading_path: tuple[str, ...]
    char_start: Count
    char_end: Count
    content_sha256: Sha256
    published_at: Annotated[datetime, msgspec.Meta(tz=True)]
    superseded: bool
    chunk_id: Id
    score: float

    @property
    def edition(self) -> tuple[str, int]:
        """Document id and version: what the fragment was cut from."""
        return self.document_id, self.document_version


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One whole answer. `details` may come with an error and nowhere else."""

    status: str
    call_id: Id
    message: str
    corpus_versions: tuple[Edition, ...]
    results: tuple[Fragment, ...]
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class Problem(msgspec.Struct, frozen=True):
    """The parts of an RFC 9457 problem document that callers lean on."""

    code: str
    call_id: Id


class DocumentText(msgspec.Struct, frozen=True):
    """The extracted text of one document version, as served."""

    document_id: Id
    version: Ordinal
    text: str
    content_sha256: Sha256


def read_envelope(value: object) -> Envelope:
    """Check decoded JSON against the published shape. Raises `msgspec.ValidationError` naming the offending field."""
    return msgspec.convert(value, Envelope)
