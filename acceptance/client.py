"""Callers as they are in the field: the official MCP client, and plain HTTP, each with one principal's bearer token."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent, Tool

from acceptance.credentials import Credentials
from acceptance.wire import Exchange, RecordingTransport

TOOL = "search_documents"
SECONDS = 60.0


class NoAnswerError(Exception):
    """The server gave no answer that can be judged; the message says what came instead."""


@dataclass(frozen=True)
class McpAnswer:
    """One tool call: what the SDK returned, or `failure`, why it refused; and the wire beneath it."""

    structured: object
    text: str
    is_error: bool
    exchanges: tuple[Exchange, ...]
    failure: str | None = None

    @property
    def call(self) -> Exchange:
        """The HTTP exchange of the call itself. Raises `NoAnswerError` when it never happened."""
        for exchange in self.exchanges:
            if exchange.method == "tools/call":
                return exchange
        raise NoAnswerError(self.failure or "the tool was never called")


@dataclass(frozen=True)
class ServerFacts:
    """What the server says of itself, and its search tool as listed."""

    product: str
    protocol: str
    tool: Tool | None


class McpCaller:
    """Asks over MCP streamable HTTP. Every call is a session of its own, so nothing carries over between callers."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def search(self, role: str, arguments: Mapping[str, str]) -> McpAnswer:
        """Call the tool as `role`. A refusal of any kind is an answer with `failure` set, never an exception."""
        transport, failure, result = RecordingTransport(), None, None
        try:
            async with self._connect(role, transport) as client:
                result = await client.call_tool(TOOL, dict(arguments))
        except* (MCPError, httpx2.HTTPError, RuntimeError, ValueError) as refused:
            failure = _reasons(refused) + _refusals(transport)
        if result is None:
            return McpAnswer(None, "", True, tuple(transport.exchanges), failure or "the call ended without a result")
        return McpAnswer(
            result.structured_content, _text(result), bool(result.is_error), tuple(transport.exchanges), failure
        )

    async def facts(self, role: str) -> ServerFacts:
        """Connect as `role` and list the tools. Raises `NoAnswerError` when the server can't be talked to."""
        transport, failure, facts = RecordingTransport(), "", None
        try:
            async with self._connect(role, transport) as client:
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                info = client.server_info
                product = f"{info.name} {info.version}" if info else ""
                facts = ServerFacts(product, client.protocol_version, tools.get(TOOL))
        except* (MCPError, httpx2.HTTPError, RuntimeError, ValueError) as refused:
            failure = _reasons(refused) + _refusals(transport)
        if facts is None:
            raise NoAnswerError(f"{self._credentials.mcp_url}: {failure}")
        return facts

    @asynccontextmanager
    async def _connect(self, role: str, transport: RecordingTransport) -> AsyncIterator[Client]:
        # Identity encoding: what is recorded is then what was said.
        headers = {"Authorization": f"Bearer {self._credentials.token(role)}", "Accept-Encoding": "identity"}
        async with (
            httpx2.AsyncClient(transport=transport, headers=headers, timeout=SECONDS) as http,
            Client(
                streamable_http_client(self._credentials.mcp_url, http_client=http), read_timeout_seconds=SECONDS
            ) as client,
        ):
            yield client


class RestCaller:
    """Asks over plain HTTP under `/api/v1`."""

    def __init__(self, credentials: Credentials, http: httpx.AsyncClient) -> None:
        self._credentials, self._http = credentials, http

    async def search(self, role: str, arguments: Mapping[str, str]) -> httpx.Response:
        """`POST /search` as `role`. Raises `NoAnswerError`."""
        return await self._send("POST", "/api/v1/search", self._credentials.token(role), json=dict(arguments))

    async def get(self, role: str, path: str, **params: str | int) -> httpx.Response:
        """`GET` a path under `/api/v1` as `role`. Raises `NoAnswerError`."""
        return await self._send("GET", f"/api/v1{path}", self._credentials.token(role), params=params)

    async def strangers(self, token: str | None) -> dict[str, httpx.Response]:
        """The same search over both doors with no token or a made-up one. Raises `NoAnswerError`."""
        call = {"name": TOOL, "arguments": {"query": "anything"}}
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return {
            "MCP": await self._send("POST", self._credentials.mcp_url, token, json=rpc),
            "REST": await self._send("POST", "/api/v1/search", token, json={"query": "anything"}),
        }

    async def _send(
        self,
        method: str,
        path: str,
        token: str | None,
        json: object = None,
        params: Mapping[str, str | int] | None = None,
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            return await self._http.request(method, path, json=json, params=params, headers=headers)
        except httpx.HTTPError as error:
            raise NoAnswerError(f"{method} {path}: {type(error).__name__}") from error


@asynccontextmanager
async def open_rest(credentials: Credentials) -> AsyncIterator[RestCaller]:
    """A REST caller whose connections are closed afterwards; redirects are not followed, compression is off."""
    async with httpx.AsyncClient(
        base_url=credentials.url,
        timeout=SECONDS,
        headers={"Accept-Encoding": "identity", "Accept": "application/json, text/event-stream"},
    ) as http:
        yield RestCaller(credentials, http)


def decode(body: bytes) -> object:
    """JSON as plain values, or `None` when it is none."""
    try:
        value: object = json.loads(body)
    except ValueError:
        return None
    return value


def _text(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def _reasons(group: BaseExceptionGroup[Exception]) -> str:
    reasons = [
        _reasons(error) if isinstance(error, BaseExceptionGroup) else f"{type(error).__name__}: {error}"
        for error in group.exceptions
    ]
    return "; ".join(reasons)


def _refusals(transport: RecordingTransport) -> str:
    # The SDK does not pass the HTTP status on, and it is what tells a bad token from a broken server.
    refused = [
        f"{exchange.method}: HTTP {exchange.status}" for exchange in transport.exchanges if exchange.status >= 400
    ]
    return f" ({', '.join(refused)})" if refused else ""
