"""What a curious caller asks of a world, and the answers as they came, but for what differs between any two calls."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
from security.interference_corpora import OWN, OWNERS, Corpus
from security.interference_worlds import Made

API = "/api/v1"
UNKNOWN = UUID("00000000-0000-4000-8000-000000000000")
PROTOCOL = "2026-07-28"
# A call's id, and in the log its moment and duration; the ids of what a probe itself has made.
_PASSING = re.compile(rb'(\\?"(?:call_id|at|latency_ms|next_cursor|job_id)\\?": ?)(?:\\?"[^"\\]*\\?"|[0-9.e-]+)')


@dataclass(frozen=True, slots=True)
class Probe:
    """One request."""

    method: str
    path: str
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.more.get('json', '')}"


Answer = tuple[int, tuple[tuple[str, str], ...], bytes]


def asked(client: httpx.Client, probe: Probe) -> Answer:
    """Status, headers but the date (and, for the log, the length: durations have more digits or fewer) and body."""
    answer = client.request(probe.method, probe.path, **probe.more)
    loose = ("date", "content-length") if "/calls" in probe.path else ("date",)
    headers = tuple(sorted((name, value) for name, value in answer.headers.multi_items() if name not in loose))
    return answer.status_code, headers, _PASSING.sub(rb"\1-", answer.content)


def probes(corpus: Corpus, made: Made) -> Iterator[Probe]:
    """Everything that is asked of both worlds, in this order."""
    yield from _searches(corpus, made)
    yield from _lists()
    for document, job in _targets(made):
        yield from _lookups(document, job)
    yield from _insights()
    yield from _writes(corpus, made)


def _targets(made: Made) -> Iterator[tuple[UUID, UUID]]:
    """Hidden documents and their jobs; one that may be seen, and one that nobody has."""
    both = list(zip(made.documents, made.jobs, strict=True))
    yield from [one for one in both if one[0] in made.hidden][:2]
    yield from [one for one in both if one[0] not in made.hidden][:1]
    yield UNKNOWN, UNKNOWN


def _searches(corpus: Corpus, made: Made) -> Iterator[Probe]:
    for query in _queries(corpus, made):
        for slug in (None, *OWNERS):
            arguments = {"query": query, "limit": 50} | ({} if slug is None else {"collection": slug})
            yield Probe("POST", f"{API}/search", {"json": arguments})
            if slug in (None, "north"):
                yield _tool(arguments)
        yield Probe("POST", f"{API}/search", {"json": {"query": query, "limit": 1}})


def _queries(corpus: Corpus, made: Made) -> list[str]:
    """Words that only hidden documents hold, all of their text, words of both kinds together, and words of nobody's."""
    secret = [paper for id_, paper in zip(made.documents, corpus.papers, strict=True) if id_ in made.hidden]
    public = [paper for id_, paper in zip(made.documents, corpus.papers, strict=True) if id_ not in made.hidden]
    found = [paper.text() for paper in (*secret[:1], *public[:1])] + [" ".join(one.words[:2]) for one in public[:2]]
    found += [one.words[-1] for one in secret[:2]]
    found += [f"{one.words[-1]} {other.words[0]} {other.words[-1]}" for one in secret[:1] for other in public[:1]]
    return [*found, "harbour lantern", f"{OWN[-1]} unheard-of"]


def _tool(arguments: dict[str, Any]) -> Probe:
    meta = {
        "io.modelcontextprotocol/protocolVersion": PROTOCOL,
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "search_documents", "arguments": arguments, "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": PROTOCOL,
        "mcp-method": "tools/call",
        "mcp-name": "search_documents",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return Probe("POST", "/mcp", {"json": body, "headers": headers})


def _lists() -> Iterator[Probe]:
    paths = ["/collections", "/roles", "/roles/staff/members", "/grants", "/tokens", "/calls"]
    places = ("", "/documents", "/versions", "/versions/2/diff", "/purges")
    paths += [f"/collections/{slug}{rest}" for slug in (*OWNERS, "nowhere") for rest in places]
    for path in paths:
        yield Probe("GET", f"{API}{path}?limit=200")
    for path in ("/collections", "/calls", *(f"/collections/{slug}/documents" for slug in OWNERS)):
        for limit in (1, 2):  # whether there is another page must not depend on what is hidden
            yield Probe("GET", f"{API}{path}?limit={limit}")
    yield Probe("GET", f"{API}/groups/members?group=crew")


def _lookups(document: UUID, job: UUID) -> Iterator[Probe]:
    """What takes the id of a document or of its job, and changes nothing."""
    yield Probe("GET", f"{API}/jobs/{job}")
    yield Probe("GET", f"{API}/documents/{document}")
    for version in (1, 2):
        own = f"/documents/{document}/versions/{version}"
        yield Probe("GET", f"{own}?start=0&end=9")
        for rest in ("", "/text", "/original"):
            yield Probe("GET", f"{API}{own}{rest}")
    yield Probe("GET", f"{API}/documents/{document}/versions/1/original", {"headers": {"range": "bytes=2-5"}})
    for question in ("explain?principal=reader&", "who?"):
        for place in ("", *(f"&collection={slug}" for slug in OWNERS)):
            yield Probe("GET", f"{API}/access/{question}action=search&document={document}{place}")
        yield Probe("GET", f"{API}/access/{question}action=search&document={document}&at=2100-01-01T00:00:00Z")
    for slug in OWNERS:
        grant = {"principal": "eve", "action": "search", "collection": slug, "document": str(document)}
        yield Probe("POST", f"{API}/access/preview", {"json": {"principal": "eve", "grant": grant}})


def _insights() -> Iterator[Probe]:
    for subject in ("principal=reader", "principal=ann", "role=staff"):
        yield Probe("GET", f"{API}/access/preview?{subject}")
        for slug in OWNERS:
            yield Probe("GET", f"{API}/access/explain?{subject}&action=search&collection={slug}&label=pay")
    for slug in (*OWNERS, "nowhere"):
        yield Probe("GET", f"{API}/access/who?collection={slug}&label=board")
        grant = {"role": "staff", "action": "search", "collection": slug, "label": "pay"}
        yield Probe("POST", f"{API}/access/preview", {"json": {"role": "staff", "grant": grant}})


def _writes(corpus: Corpus, made: Made) -> Iterator[Probe]:
    """What must be refused alike; and uploads of what is there already, which must not be recognised."""
    for id_, paper in zip(made.documents, corpus.papers, strict=True):
        if id_ not in made.hidden:
            continue
        yield Probe("DELETE", f"{API}/documents/{id_}")
        grant = {"principal": "eve", "action": "search", "collection": paper.collection, "document": str(id_)}
        yield Probe("POST", f"{API}/grants", {"json": grant})
        purge = {"document_id": str(id_), "version": 1, "reason": "curious"}
        yield Probe("POST", f"{API}/collections/{paper.collection}/purges", {"json": purge})


def uploads(corpus: Corpus, made: Made) -> Iterator[Probe]:
    """The bytes of hidden documents under their own source ids and under new ones; ids of what is made are random."""
    for id_, paper in zip(made.documents, corpus.papers, strict=True):
        if id_ in made.hidden and paper.fate != "failed":
            for source in (paper.words[-1], f"new-{paper.words[-1]}"):
                files = {"file": (f"{source}.txt", paper.text().encode())}
                yield Probe("POST", f"{API}/collections/{paper.collection}/documents", {"files": files})


def made_alike(client: httpx.Client, probe: Probe) -> Answer:
    """The answer to an upload, without the id that was given to what it made."""
    status, headers, body = asked(client, probe)
    return status, headers, _MADE.sub(b"", body)


_MADE = re.compile(rb'"document_id":"[0-9a-f-]{36}"')
