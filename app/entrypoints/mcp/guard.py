"""The guard before `/mcp`: who the caller is, from the Authorization header and nothing else."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext

from app.db.session import Database
from app.domain.principal import Principal
from app.entrypoints.bearer import bearer, challenge
from app.errors import IndexUnavailable, InternalError, InvalidRequest, StacksError, Timeout, Unauthenticated
from app.identity import tokens

_CALLER = "stacks.caller"
# ASGI as the two frameworks on either side both mean it; their own types for it do not fit one another.
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]


class Guard:
    """Lets a request in with its principal attached; answers 401 itself otherwise.

    While the database is away nobody can be told from anybody. A well-formed credential is then let through with the
    fault attached in the place of a principal: the protocol's own pages answer, and every tool says what is wrong.
    """

    def __init__(self, application: Application, database: Database, resource_metadata: str) -> None:
        self._application = application
        self._database = database
        self._resource_metadata = resource_metadata

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """ASGI."""
        try:
            credential = bearer(scope["headers"])
            caller = await self._identify(credential)
        except InvalidRequest as error:
            await _refuse(send, 400, error, None)
        except Unauthenticated as error:
            presented = any(name == b"authorization" for name, _ in scope["headers"])
            await _refuse(send, 401, error, challenge(self._resource_metadata, presented=presented))
        else:
            await self._application({**scope, _CALLER: caller}, receive, send)

    async def _identify(self, credential: str) -> Principal | StacksError:
        if not tokens.looks_like_token(credential):
            raise Unauthenticated
        try:
            return await self._database.read(lambda transaction: tokens.authenticate(transaction, credential))
        except (IndexUnavailable, Timeout) as fault:
            return fault


async def caller_of(context: ServerRequestContext) -> Principal:
    """The principal that the guard attached. Raises the fault that it attached instead, if any."""
    scope = getattr(context.request, "scope", {})
    caller = scope.get(_CALLER)
    if isinstance(caller, Principal):
        return caller
    raise caller if isinstance(caller, StacksError) else InternalError()


async def _refuse(send: Send, status: int, error: StacksError, challenged: str | None) -> None:
    body = json.dumps({"error": error.code, "message": error.message}).encode()
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    headers.append((b"content-length", str(len(body)).encode()))
    if challenged is not None:
        headers.append((b"www-authenticate", challenged.encode()))
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
