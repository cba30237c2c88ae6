"""All that was seen while one question was asked: plain data, so that judging needs no server."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from acceptance.client import McpAnswer, decode
from acceptance.envelope import DocumentText
from acceptance.wire import json_strings


@dataclass(frozen=True)
class RestAnswer:
    """One HTTP answer; `body` as sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> object:
        """The body as plain JSON values, `None` when it is no JSON."""
        return decode(self.body)

    def strings(self) -> Iterator[str]:
        """Everything readable in the answer."""
        yield from self.headers.values()
        body = self.body.decode(errors="replace")
        yield body
        yield from json_strings(body)


@dataclass(frozen=True)
class Library:
    """What the right answers are measured by. `sources`: document id to source id, from the owner's listing.

    `originals`: SHA-256 (hex) of the fixture files, by source id and edition.
    """

    sources: Mapping[str, str]
    originals: Mapping[tuple[str, int], str]


@dataclass(frozen=True)
class Observation:
    """One question's answers. `texts`: by document id and version, as served to the same caller, or why not."""

    mcp: McpAnswer
    rest: RestAnswer
    texts: Mapping[tuple[str, int], DocumentText | str] = field(default_factory=dict)

    def strings(self) -> Iterator[str]:
        """Everything readable that the caller was sent, over either door."""
        for exchange in self.mcp.exchanges:
            yield from exchange.strings()
        yield self.mcp.failure or ""
        yield from self.rest.strings()
