"""Errors as RFC 9457 problem documents, and nothing in them that is not the caller's business."""

from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException

from app.entrypoints.bearer import challenge, scope_challenge
from app.errors import InsufficientScope, StacksError, Unauthenticated

log = structlog.get_logger()

PROBLEM = "application/problem+json"
_BY_STATUS = {400: "invalid_request", 404: "not_found", 405: "invalid_request", 413: "payload_too_large"}


def of_ours(request: Request[Any, Any, Any], error: StacksError) -> Response[dict[str, Any]]:
    """A problem document for one of our own errors."""
    headers = {"cache-control": "no-store"}
    if isinstance(error, Unauthenticated):
        presented = "authorization" in request.headers
        headers["www-authenticate"] = challenge(request.app.state.resource_metadata, presented=presented)
    if isinstance(error, InsufficientScope):
        headers["www-authenticate"] = scope_challenge(request.app.state.resource_metadata, error.action)
    if "retry_after_seconds" in error.details:
        headers["retry-after"] = str(round(error.details["retry_after_seconds"]))
    body = problem(error.http_status, error.code, error.message, **error.details)
    if error.call_id is not None:
        body["call_id"] = str(error.call_id)
    return Response(body, status_code=error.http_status, media_type=PROBLEM, headers=headers)


def of_litestar(_: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    """A problem document for what the framework refused: an unknown path, a body that is no JSON, a wrong type."""
    status = error.status_code
    code = _BY_STATUS.get(status, "invalid_request" if status < 500 else "internal")
    if status >= 500:
        log.error("framework fault", cause=type(error.__cause__ or error).__name__)
    body = problem(status, code, _detail(error))
    return Response(body, status_code=status, media_type=PROBLEM, headers={"cache-control": "no-store"})


def of_bugs(_: Request[Any, Any, Any], bug: Exception) -> Response[dict[str, Any]]:
    """A problem document for a bug outside any call. Only its type goes to the log."""
    log.error("unhandled", cause=type(bug).__name__)
    return Response(problem(500, "internal", StacksError.default_message), status_code=500, media_type=PROBLEM)


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    """The members of a problem document; `code` and, for calls, `call_id` are ours."""
    title = code.replace("_", " ").capitalize()
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code, **more}


def _detail(error: HTTPException) -> str:
    """What was wrong, by field name only: the framework's own messages quote values."""
    extra = error.extra if isinstance(error.extra, list) else []
    fields = sorted({str(one["key"]) for one in extra if isinstance(one, dict) and one.get("key")})
    if fields:
        return f"Wrong or missing: {', '.join(fields)}. The schema at /schema says what is allowed."
    return {404: "No such path.", 405: "This path does not take that method."}.get(
        error.status_code, "The request is not of the form that /schema describes."
    )
