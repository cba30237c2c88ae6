"""What stands before every handler: who calls, proved before a byte of the body is read, and a call to write down."""

from contextlib import suppress
from functools import partial
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Scope

from app.domain.access import SLUG
from app.domain.calls import Call, Entrypoint
from app.domain.principal import Principal
from app.entrypoints.bearer import bearer
from app.entrypoints.http.problems import call_of, code_of
from app.entrypoints.services import Services
from app.errors import InternalError, InvalidRequest, StacksError, Unauthenticated, UnsupportedType

PUBLIC = "public"  # the `opt` of a route that answers without a credential, or asks for one itself
TAKES = "takes"  # the `opt` of a route whose body is not JSON: its content type
JSON = "application/json"
_NEVER_ASKED = frozenset(("self", "request", "data"))  # what a handler takes and no query can name


async def require_caller(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """The guard of every route: a new one is closed until it says `PUBLIC`.

    Raises `Unauthenticated`, `IndexUnavailable`, and, once it is known who calls, `InvalidRequest`, `UnsupportedType`.
    """
    if handler.opt.get(PUBLIC):
        return
    scope = connection.scope
    # The operation is the method and the route's template, never the path as sent: that is the caller's own text.
    call = Call(Entrypoint.HTTP, f"{scope.get('method', '')} {scope['path_template']}")
    scope["state"]["call"] = call
    services: Services = connection.app.state.services
    call.principal = await services.credentials.authenticate(bearer(scope["headers"]))
    if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
        raise InvalidRequest("path", "holds a NUL", allowed="text without one")
    _refuse_unknown(connection, handler)
    sent, takes = connection.headers.get("content-type"), handler.opt.get(TAKES, JSON)
    if sent is not None and sent.partition(";")[0].strip().lower() != takes:
        raise UnsupportedType(f"This route takes {takes}.")


def _refuse_unknown(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """A filter that is dropped because its name is misspelt would widen what it was meant to narrow."""
    known = set(handler.parsed_fn_signature.parameters) - handler.dependency_name_set - _NEVER_ASKED
    known -= set(connection.scope["path_params"])
    if set(connection.query_params) - known:
        allowed = ", ".join(sorted(known)) or "none here"
        raise InvalidRequest("query parameters", "one is not known", allowed=allowed)


async def write_down(error: Exception, scope: Scope) -> None:
    """Write down a call that was refused before its handler could: a body that is no JSON is a call too.

    Its row is durable before the answer leaves: in the database, or in the spool while that is away.
    """
    call = call_of(scope)
    told = isinstance(error, Unauthenticated) or (isinstance(error, StacksError) and error.call_id is not None)
    if call is None or call.recorded or told:
        return
    services: Services = scope["litestar_app"].state.services
    with suppress(StacksError):
        if isinstance(error, StacksError):
            await services.calls.serve(call, partial(_raise, error))
        call.outcome = code_of(error)
        await services.calls.record(call)


async def _raise(error: Exception) -> None:
    raise error


def provide_services(request: Request[Any, Any, Any]) -> Services:
    """The parts of this instance."""
    services: Services = request.app.state.services
    return services


def provide_call(request: Request[Any, Any, Any]) -> Call:
    """The call that the guard began."""
    call = call_of(request.scope)
    if call is None:
        raise InternalError
    return call


def provide_caller(call: Call) -> Principal:
    """The principal that the request's bearer token proved."""
    if call.principal is None:
        raise Unauthenticated
    return call.principal


def named(slug: str | None) -> str | None:
    """What the log keeps of a collection's name: a slug, and nothing else that a caller may have put there."""
    return slug if slug is not None and SLUG.fullmatch(slug) else None
