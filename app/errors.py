"""One exception family. Each class carries the outcome code and the HTTP status that CONTRACT gives it.

Messages are written for the caller: they never carry SQL, paths, class names, or anything about what is hidden.
"""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID


class StacksError(Exception):
    """Base of every error this project raises on purpose.

    `message` may be shown to the caller; `details` are the machine-readable part of it.
    """

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    default_message: ClassVar[str] = "Something went wrong here. The operator finds it in the log under this call id."

    def __init__(self, message: str | None = None, *, details: Mapping[str, Any] | None = None) -> None:
        self.message = message or self.default_message
        self.details: dict[str, Any] = dict(details or {})
        self.call_id: UUID | None = None  # set by the call log once the call has one
        super().__init__(self.message)


class InternalError(StacksError):
    """A bug, or two checks that disagree. What happened is only in the log."""


class Denied(StacksError):
    """What was named is outside the caller's rights, or does not exist: the caller cannot tell which."""

    code = "denied"
    http_status = 403
    default_message = (
        "Outside what you may use, or not existing. Ask the owner of the collection for access if you need it."
    )


class NotFound(StacksError):
    """An id that does not exist or may not be seen: the same answer for both."""

    code = "not_found"
    http_status = 404
    default_message = "No such thing, or not one you may see."


class InvalidRequest(StacksError):
    """An argument is wrong. `details["field"]` names it, `details["allowed"]` says what is."""

    code = "invalid_request"
    http_status = 400

    def __init__(self, field: str, problem: str, *, allowed: str) -> None:
        super().__init__(f"{field}: {problem}; allowed: {allowed}", details={"field": field, "allowed": allowed})


class SourceRefused(InvalidRequest):
    """A document cannot be fetched from where it is said to be.

    One answer for an address that does not exist, does not answer, or lies where nothing may be fetched from: who
    asks must not learn from here what there is inside our network.
    """

    def __init__(self, problem: str = "Nothing can be fetched from there.") -> None:
        super().__init__("source_uri", problem, allowed="addresses of the collection's list that answer with a file")


class RangeUnsatisfiable(InvalidRequest):
    """The part that was asked for begins behind the end."""

    http_status = 416

    def __init__(self, size: int) -> None:
        super().__init__("Range", "begins behind the end", allowed=f"a part of {size} bytes")
        self.size = size


class IndexUnavailable(StacksError):
    """The database or the index cannot answer. Says nothing about content."""

    code = "index_unavailable"
    http_status = 503
    default_message = "The index cannot answer right now. This says nothing about what it holds; try again shortly."


class IssuerUnavailable(IndexUnavailable):
    """An identity provider does not give its keys, so its tokens can be told neither good nor bad."""

    default_message = "The identity provider does not answer right now, so who you are cannot be checked; try again."


class EmbedderUnavailable(StacksError):
    """The embedding model cannot answer."""

    code = "embedder_unavailable"
    http_status = 503
    default_message = "The embedding model cannot answer right now; try again shortly."


class Timeout(StacksError):
    """The call ran past its deadline."""

    code = "timeout"
    http_status = 504
    default_message = "The call ran past its deadline. This says nothing about content; try again or narrow it."


class NotConfigured(StacksError):
    """The part that was asked for is not set up on this instance."""

    code = "not_configured"
    http_status = 501
    default_message = "This part is not set up on this instance."


class Conflict(StacksError):
    """The write does not fit the present state."""

    code = "conflict"
    http_status = 409
    default_message = "This does not fit the present state."


class PayloadTooLarge(StacksError):
    """The body or file is over the limit."""

    code = "payload_too_large"
    http_status = 413
    default_message = "Too large."


class UnsupportedType(StacksError):
    """The content is of no kind that is read here."""

    code = "unsupported_type"
    http_status = 415
    default_message = "This kind of file is not read here."


class CapacityExceeded(StacksError):
    """More at once than this instance takes."""

    code = "capacity_exceeded"
    http_status = 503

    def __init__(self, resource: str, maximum: int, retry_after_seconds: float) -> None:
        super().__init__(
            f"Too many {resource} at once; try again shortly.",
            details={"resource": resource, "max": maximum, "retry_after_seconds": retry_after_seconds},
        )


class Unauthenticated(StacksError):
    """A missing or bad credential. Not an outcome: HTTP 401 with a challenge, on every entrypoint."""

    code = "unauthenticated"
    http_status = 401
    default_message = "A valid bearer token is required."


class InsufficientScope(StacksError):
    """The token is good but was narrowed to other actions. HTTP 403 with a challenge."""

    code = "insufficient_scope"
    http_status = 403
    default_message = "This token was narrowed to other actions."

    def __init__(self, action: str) -> None:
        super().__init__(details={"action": action})
        self.action = action


class ConfigurationError(StacksError):
    """A setting is wrong, or the place we were started in is unsafe: the start stops here, plainly."""

    code = "configuration"


class IngestError(StacksError):
    """One file could not be taken. The others go on; `failure` is the job's code."""

    failure: ClassVar[str] = "unreadable"


class UnsupportedFile(IngestError, UnsupportedType):
    """The content is of no kind that is read here, whatever the name says."""

    failure = "unsupported_type"


class UnreadableFile(IngestError, UnsupportedType):
    """The content claims a kind but is damaged."""

    failure = "unreadable"
    default_message = "The file is damaged or not what it claims to be."


class PasswordRequired(IngestError, UnsupportedType):
    """The file is encrypted and no password, or a wrong one, was given."""

    failure = "password_required"
    default_message = "The file is encrypted; give its password with the upload."


class EmptyDocument(IngestError, UnsupportedType):
    """The file was read and holds no text."""

    failure = "empty_document"
    default_message = "The file holds no text."


class FileTooLarge(IngestError, PayloadTooLarge):
    """The file is over the size limit."""

    failure = "payload_too_large"


class LimitExceeded(IngestError, PayloadTooLarge):
    """Reading the file took more time, memory or output than a parser may use."""

    failure = "limit_exceeded"
    default_message = "Reading the file took more time, memory or output than is allowed."


class PageNotRecognised(UnsupportedFile):
    """A page is a picture of text that no recogniser here can read; without it the document would be half of one."""

    def __init__(self, page: int) -> None:
        super().__init__(
            f"Page {page} is a picture of text that is not recognised here: printed English, Russian and Chinese are. "
            "Give the file with its text, or a better scan."
        )
        self.number = page


class RecogniserMissing(UnsupportedFile):
    """A page is a picture of text, and what might read it is not installed."""

    def __init__(self, page: int) -> None:
        super().__init__(
            f"Page {page} is a picture of text that cannot be read here without Tesseract and its Russian and English "
            "data, and not all of that is installed on the server (docs/operators.md)."
        )
        self.number = page


class TooManyScannedPages(LimitExceeded):
    """More pages are pictures of text than are recognised in one file."""

    def __init__(self, pages: int) -> None:
        super().__init__(
            f"{pages} or more pages are pictures of text, and the server recognises fewer in one file. Give the file "
            "in parts, or ask the operator to raise STACKS_OCR_PAGES_MAX."
        )
        self.number = pages
