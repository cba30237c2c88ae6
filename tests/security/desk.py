"""The desk of one instance, in this process: REST and MCP as a client would speak them, over ASGI."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from litestar import Litestar

from app.entrypoints.http.application import create
from app.entrypoints.mcp.server import HttpMcp
from app.entrypoints.services import Services

PROTOCOL = "2026-07-28"


class Desk:
    """Asks as the holder of a token. Answers are the raw responses."""

    def __init__(self, http: httpx.AsyncClient, application: Litestar | None = None) -> None:
        self._http = http
        self._application = application

    @property
    def application(self) -> Litestar:
        """The application itself, to read its routes from."""
        assert self._application is not None, "a real server's application lives elsewhere"
        return self._application

    async def ask(self, token: str | None, method: str, path: str, **rest: Any) -> httpx.Response:
        """One HTTP request."""
        headers = {**rest.pop("headers", {}), **({"authorization": f"Bearer {token}"} if token else {})}
        return await self._http.request(method, path, headers=headers, **rest)

    async def search(self, token: str | None, **arguments: Any) -> httpx.Response:
        """`POST /search`."""
        return await self.ask(token, "POST", "/api/v1/search", json=arguments)

    async def rpc(self, token: str | None, method: str, name: str = "", **params: Any) -> httpx.Response:
        """One MCP request of the stateless protocol."""
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": PROTOCOL}
        headers["mcp-method"] = method
        if name:
            headers["mcp-name"], params = name, {"name": name, **params}
        meta = {
            "io.modelcontextprotocol/protocolVersion": PROTOCOL,
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        return await self.ask(token, "POST", "/mcp", json=body, headers=headers)

    async def tool(self, token: str | None, name: str, arguments: Mapping[str, Any]) -> httpx.Response:
        """Call a tool."""
        return await self.rpc(token, "tools/call", name, arguments=dict(arguments))


def spoken(response: httpx.Response) -> dict[str, Any]:
    """The JSON-RPC message of an MCP answer, whether it came as JSON or as an event."""
    body = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        body = next(line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:"))
    message: dict[str, Any] = json.loads(body)
    return message


@asynccontextmanager
async def opened(services: Services) -> AsyncIterator[Desk]:
    """The application around `services`, without a socket."""
    metadata = f"{services.base_url}/.well-known/oauth-protected-resource/mcp"
    mcp = HttpMcp(services, metadata)
    application = create(services, mcp.application, metadata, [])
    transport = httpx.ASGITransport(app=application)  # type: ignore[arg-type]  # two spellings of ASGI
    async with mcp.lifespan(), httpx.AsyncClient(transport=transport, base_url=services.base_url, timeout=60) as http:
        yield Desk(http, application)


@asynccontextmanager
async def at(url: str) -> AsyncIterator[Desk]:
    """The same over a socket."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        yield Desk(http)
