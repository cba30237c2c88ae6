"""What really crossed the wire, kept byte for byte beside what the MCP SDK made of it."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field

import httpx2


@dataclass
class Exchange:
    """One HTTP exchange. `method` is the JSON-RPC method, or the HTTP path where there is none."""

    method: str
    status: int
    headers: Mapping[str, str]
    body: bytearray = field(default_factory=bytearray)

    def strings(self) -> Iterator[str]:
        """Everything readable in the answer: header values, the body as it is, and every string of its JSON."""
        yield from self.headers.values()
        body = self.body.decode(errors="replace")
        yield body
        yield from json_strings(body)
        for line in body.splitlines():
            if line.startswith("data:"):
                yield from json_strings(line.removeprefix("data:"))


class _Tee(httpx2.AsyncByteStream):
    def __init__(self, source: httpx2.AsyncByteStream, copy: bytearray) -> None:
        self._source, self._copy = source, copy

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for block in self._source:
            self._copy += block
            yield block

    async def aclose(self) -> None:
        await self._source.aclose()


class RecordingTransport(httpx2.AsyncHTTPTransport):
    """An HTTP transport that keeps every exchange, bytes as sent: ask for `Accept-Encoding: identity`."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[Exchange] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; the answer is copied while the caller reads it."""
        response = await super().handle_async_request(request)
        exchange = Exchange(_rpc_method(request), response.status_code, dict(response.headers))
        self.exchanges.append(exchange)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Tee(response.stream, exchange.body)
        return response


def json_strings(text: str) -> Iterator[str]:
    """Every string inside `text` read as JSON, keys too, and inside strings that are JSON again; none if it is not."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return
    yield from _strings(value)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value.lstrip()[:1] in ("{", "[", '"'):
            yield from json_strings(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _rpc_method(request: httpx2.Request) -> str:
    message: object = json.loads(request.content) if request.method == "POST" else None
    method = message.get("method") if isinstance(message, dict) else None
    return str(method or request.url.path)
