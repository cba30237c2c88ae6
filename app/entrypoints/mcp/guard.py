"""The guard before `/mcp`: who the caller is, from the Authorization header and nothing else."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext

from app.domain.access import Action
from app.domain.principal import Principal
from app.entrypoints.bearer import bearer, challenge, scope_challenge
from app.errors import (
    IndexUnavailable,
    InsufficientScope,
    InternalError,
    InvalidRequest,
    StacksError,
    Timeout,
    Unauthenticated,
)
from app.identity.credentials import Credentials

_CALLER = "stacks.caller"
# ASGI as the two frameworks on either side both mean it; their own types for it do not fit one another.
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]


class Guard:
    """Lets a POST in with its principal attached; answers 401, 403 or 405 itself otherwise.

    There are no sessions, so there is nothing for a GET to listen to: a stream would only outlive the token it began
    with.

    While the database (or an identity provider) is away nobody can be told from anybody. A well-formed credential is
    then let through with the fault attached in the place of a principal: the protocol's own pages answer, and every
    tool says what is wrong.
    """

    def __init__(self, application: Application, credentials: Credentials, resource_metadata: str) -> None:
        self._application = application
        self._credentials = credentials
        self._resource_metadata = resource_metadata

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """ASGI."""
        try:
            caller = await self._identify(bearer(scope["headers"]))
            if isinstance(caller, Principal):
                _require_scope(caller)
        except InvalidRequest as error:
            await _refuse(send, error)
        except Unauthenticated as error:
            presented = any(name == b"authorization" for name, _ in scope["headers"])
            await _refuse(send, error, ("www-authenticate", challenge(self._resource_metadata, presented=presented)))
        except InsufficientScope as error:
            await _refuse(send, error, ("www-authenticate", scope_challenge(self._resource_metadata, error.action)))
        else:
            if scope["method"] == "POST":
                await self._application({**scope, _CALLER: caller}, receive, send)
            else:
                await _refuse(send, InvalidRequest("method", "not taken here", allowed="POST"), ("allow", "POST"), 405)

    async def _identify(self, credential: str) -> Principal | StacksError:
        try:
            return await self._credentials.authenticate(credential)
        except (IndexUnavailable, Timeout) as fault:
            return fault


async def caller_of(context: ServerRequestContext) -> Principal:
    """The principal that the guard attached. Raises the fault that it attached instead, if any."""
    scope = getattr(context.request, "scope", {})
    caller = scope.get(_CALLER)
    if isinstance(caller, Principal):
        return caller
    raise caller if isinstance(caller, StacksError) else InternalError()


def _require_scope(caller: Principal) -> None:
    """Raise `InsufficientScope` for a token that was narrowed to other actions than any tool here needs."""
    bounds = caller.narrowing
    if bounds is not None and bounds.actions is not None and Action.SEARCH not in bounds.actions:
        raise InsufficientScope(Action.SEARCH)


async def _refuse(
    send: Send, error: StacksError, header: tuple[str, str] | None = None, status: int | None = None
) -> None:
    body = json.dumps({"error": error.code, "message": error.message}).encode()
    headers = [("content-type", "application/json"), ("cache-control", "no-store"), ("content-length", str(len(body)))]
    headers += [header] if header else []
    start: dict[str, Any] = {
        "type": "http.response.start",
        "status": status or error.http_status,
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
