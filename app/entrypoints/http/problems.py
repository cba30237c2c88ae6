"""Errors as RFC 9457 problem documents, and nothing in them that is not the caller's business."""

from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.types import Scope

from app.domain.calls import Call
from app.entrypoints.bearer import challenge, scope_challenge
from app.errors import InsufficientScope, RangeUnsatisfiable, StacksError, Unauthenticated

log = structlog.get_logger()

PROBLEM = "application/problem+json"
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
# What a body that is nested too deep, or whose text is no text, makes of the parsers before any code of ours.
UNREADABLE = (RecursionError, UnicodeDecodeError)
_BY_STATUS = {400: "invalid_request", 404: "not_found", 405: "invalid_request", 413: "payload_too_large"}
_DETAILS = {404: "No such path.", 405: "This path does not take that method.", 413: "Larger than is taken here."}
_FORM = "The request is not of the form that /schema describes."


def call_of(scope: Scope) -> Call | None:
    """The call that the guard began, if the request came as far."""
    call: Call | None = scope.get("state", {}).get("call")
    return call


def code_of(error: Exception) -> str:
    """The outcome code of an error that is not one of ours."""
    if isinstance(error, HTTPException):
        return _BY_STATUS.get(error.status_code, "invalid_request" if error.status_code < 500 else "internal")
    return "invalid_request" if isinstance(error, UNREADABLE) else "internal"


def of_ours(request: Request[Any, Any, Any], error: StacksError) -> Response[dict[str, Any]]:
    """A problem document for one of our own errors."""
    headers = dict(HEADERS)
    if isinstance(error, Unauthenticated):
        presented = "authorization" in request.headers
        headers["www-authenticate"] = challenge(request.app.state.resource_metadata, presented=presented)
    if isinstance(error, InsufficientScope):
        headers["www-authenticate"] = scope_challenge(request.app.state.resource_metadata, error.action)
    if isinstance(error, RangeUnsatisfiable):
        headers["content-range"] = f"bytes */{error.size}"
    if "retry_after_seconds" in error.details:
        headers["retry-after"] = str(round(error.details["retry_after_seconds"]))
    body = problem(error.http_status, error.code, error.message, **error.details)
    if error.call_id is not None:
        body["call_id"] = str(error.call_id)
    return Response(body, status_code=error.http_status, media_type=PROBLEM, headers=headers)


def of_litestar(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    """A problem document for what the framework refused: an unknown path, a body that is no JSON, a wrong type."""
    if error.status_code >= 500:
        log.error("framework fault", cause=type(error.__cause__ or error).__name__)
    return _of_others(request, error.status_code, code_of(error), _detail(error))


def of_unreadable(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    """A problem document for a body on which a parser gave up."""
    return _of_others(request, 400, code_of(error), _FORM)


def of_bugs(request: Request[Any, Any, Any], bug: Exception) -> Response[dict[str, Any]]:
    """A problem document for a bug outside any handler. Only its type goes to the log."""
    log.error("unhandled", cause=type(bug).__name__)
    return _of_others(request, 500, code_of(bug), StacksError.default_message)


def _of_others(request: Request[Any, Any, Any], status: int, code: str, detail: str) -> Response[dict[str, Any]]:
    call = call_of(request.scope)
    known = {} if call is None else {"call_id": str(call.call_id)}
    body = problem(status, code, detail, **known)
    return Response(body, status_code=status, media_type=PROBLEM, headers=HEADERS)


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
    return _DETAILS.get(error.status_code, _FORM)
