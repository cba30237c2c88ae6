"""What the tests of MCP share: clients of both eras and over both transports, and answers taken apart."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jsonschema
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from support.api import Api
from support.server import ROOT

TOOL = "search_documents"
MODERN = "2026-07-28"
ERAS = ("legacy", MODERN)


@asynccontextmanager
async def connected(api: Api, who: str, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client over streamable HTTP, as `who`; `mode` is "legacy" for the handshake, or a modern revision."""
    async with (
        httpx2.AsyncClient(headers={**api.headers(who), **headers}, timeout=60) as http,
        Client(streamable_http_client(api.server.mcp_url, http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(api: Api, who: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client that starts `stacks mcp` and speaks over its standard input and output."""
    environment = {**api.server.environment, "STACKS_TOKEN": api.tokens.get(who, who)}
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "app", "mcp"], env=environment, cwd=ROOT)
    async with Client(parameters, mode=mode) as client:
        yield client


async def called(client: Client, **arguments: Any) -> tuple[dict[str, Any], bool]:
    """Call the tool; its envelope, and whether it is an error. Text and structure must say the same, as declared."""
    result = await client.call_tool(TOOL, arguments)
    envelope = envelope_of(result)
    [tool] = (await client.list_tools()).tools
    jsonschema.validate(envelope, tool.output_schema or {}, format_checker=jsonschema.FormatChecker())
    return envelope, bool(result.is_error)


def envelope_of(result: CallToolResult) -> dict[str, Any]:
    """The structured content, which the one text block repeats as JSON."""
    [block] = result.content
    assert isinstance(block, TextContent)
    envelope = result.structured_content
    assert isinstance(envelope, dict)
    assert json.loads(block.text) == envelope
    return envelope


def rpc(api: Api, who: str, body: Any, **headers: str) -> Any:
    """POST something to `/mcp` by hand, as a handshake client would; the response."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"accept": "application/json, text/event-stream", "content-type": "application/json", **headers}
    return api(who, "POST", "/mcp", root="", content=content, headers=sent)


def message(response: Any) -> dict[str, Any]:
    """The JSON-RPC message of a response, whether it came as JSON or as an event."""
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    found: dict[str, Any] = json.loads(lines[0] if lines else response.text)
    return found


def tool_call(arguments: Any, name: Any = TOOL) -> dict[str, Any]:
    """A `tools/call` request."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
