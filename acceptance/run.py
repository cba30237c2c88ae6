"""One run of the suite: ask, judge, and make the rows of the protocol."""

import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime

import httpx
import msgspec

from acceptance import boundary
from acceptance.checks import Judgement, judge
from acceptance.client import McpCaller, NoAnswerError, RestCaller, ServerFacts, decode
from acceptance.envelope import DocumentText, read_envelope
from acceptance.observation import Library, Observation, RestAnswer
from acceptance.protocol import Head, Row
from acceptance.questions import Question, Suite

OWNER = "owner"


class Run:
    """Asks every question once, over both doors. Answers of one caller are never used for another."""

    def __init__(self, suite: Suite, mcp: McpCaller, rest: RestCaller) -> None:
        self._suite, self._mcp, self._rest = suite, mcp, rest
        self._call_ids: set[str] = set()
        self._texts: dict[tuple[str, str, int], DocumentText | str] = {}

    async def facts(self) -> ServerFacts:
        """What the server says of itself. Raises `NoAnswerError` when it can't be reached."""
        return await self._mcp.facts(self._suite.questions[0].role)

    async def rows(self, facts: ServerFacts, originals: dict[tuple[str, int], str]) -> AsyncIterator[Row]:
        """Every row of the protocol, as it becomes known. `originals`: SHA-256 by source id and edition."""
        listing = await self._collections()
        library = Library(await self._sources(listing), originals)
        for question in self._suite.questions:
            yield await self._question(question, library)
        for row in await self._boundaries(facts, listing):
            yield row

    async def _question(self, question: Question, library: Library) -> Row:
        try:
            mcp = await self._mcp.search(question.role, question.arguments())
            rest = _plain(await self._rest.search(question.role, question.arguments()))
            texts = await self._cited_texts(question.role, mcp.structured)
        except NoAnswerError as error:
            return _row(Judgement(question, (f"no answer: {error}",), None, None))
        return _row(judge(question, Observation(mcp, rest, texts), library, self._call_ids))

    async def _cited_texts(self, role: str, structured: object) -> dict[tuple[str, int], DocumentText | str]:
        try:
            results = read_envelope(structured).results
        except msgspec.ValidationError:
            return {}  # Judged as a misshapen answer; there is nothing to look up.
        return {fragment.edition: await self._text(role, *fragment.edition) for fragment in results}

    async def _text(self, role: str, document: str, version: int) -> DocumentText | str:
        key = (role, document, version)
        if key not in self._texts:
            answer = await self._rest.get(role, f"/documents/{document}/versions/{version}/text")
            self._texts[key] = _document_text(answer)
        return self._texts[key]

    async def _collections(self) -> tuple[str, ...]:
        return tuple(str(item["slug"]) for item in await self._items("/collections"))

    async def _sources(self, collections: Sequence[str]) -> dict[str, str]:
        sources: dict[str, str] = {}
        for slug in collections:
            for item in await self._items(f"/collections/{slug}/documents"):
                sources[str(item["id"])] = str(item["source_id"])
        return sources

    async def _items(self, path: str) -> list[dict[str, object]]:
        """All items of a list as the owner sees it, page by page. Raises `NoAnswerError`."""
        items: list[dict[str, object]] = []
        cursor: str | None = None
        while True:
            answer = await self._rest.get(OWNER, path, limit=200, **({"cursor": cursor} if cursor else {}))
            try:
                page = msgspec.json.decode(answer.content, type=_Page)
            except msgspec.MsgspecError as error:
                raise NoAnswerError(f"{path} as {OWNER}: status {answer.status_code}, no list") from error
            items += page.items
            if not page.next_cursor or page.next_cursor == cursor:
                return items
            cursor = page.next_cursor

    async def _boundaries(self, facts: ServerFacts, collections: Sequence[str]) -> list[Row]:
        listed = boundary.tool_declaration(facts.tool)
        rows = [_built_in("tool-declaration", "search_documents as listed", faults=listed)]
        for name, token in (("no-token", None), ("unknown-token", f"stk_{secrets.token_urlsafe(32)}")):
            rows.append(await self._stranger(name, token))
        closed = boundary.closed_questions(self._suite.questions, collections)
        if not closed:
            fault = "no question is denied an existing collection, so this could not be checked"
            rows.append(_built_in("forbidden-equals-unknown", "no closed collection asked for", faults=[fault]))
        return rows + [await self._indistinguishable(question) for question in closed]

    async def _stranger(self, name: str, token: str | None) -> Row:
        text = "the same search with " + ("a token nobody issued" if token else "no token")
        try:
            answers = {door: _plain(answer) for door, answer in (await self._rest.strangers(token)).items()}
            faults = list(boundary.unauthorized(answers))
        except NoAnswerError as error:
            faults = [f"no answer: {error}"]
        return _built_in(name, text, expected="401", faults=faults)

    async def _indistinguishable(self, question: Question) -> Row:
        slug = question.collection or ""
        forbidden, unknown = question.arguments(), question.arguments() | {"collection": boundary.made_up_slug(slug)}
        faults: list[str] = []
        try:
            mcp = [await self._mcp.search(question.role, arguments) for arguments in (forbidden, unknown)]
            rest = [await self._rest.search(question.role, arguments) for arguments in (forbidden, unknown)]
            faults += boundary.equal_bytes("MCP", *(boundary.wire_answer(answer) for answer in mcp))
            faults += boundary.equal_bytes("REST", *(_plain(answer) for answer in rest))
        except NoAnswerError as error:
            faults.append(f"no answer: {error}")
        text = "a forbidden and a made-up collection answer alike to the byte, call_id aside"
        name = f"forbidden-equals-unknown:{question.role}:{slug}"
        return _built_in(name, text, role=question.role, collection=slug, expected="denied", faults=faults)


class _Page(msgspec.Struct, frozen=True):
    items: list[dict[str, object]]
    next_cursor: str | None = None


def head(server: str, facts: ServerFacts, suite: Suite) -> Head:
    """The head of the protocol, with the time of now."""
    return Head(
        server=server,
        version=facts.product.strip(),
        protocol=facts.protocol,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        suite_digest=suite.digest,
    )


def _row(judgement: Judgement) -> Row:
    question, envelope, cited = judgement.question, judgement.envelope, judgement.cited
    results = envelope.results if envelope else ()
    edition = f", edition {question.edition}" if question.edition else ""
    return Row(
        id=question.id,
        question=question.query,
        role=question.role,
        collection=question.collection or "",
        expected_outcome=question.outcome,
        expected_document=f"{question.document}{edition}" if question.document else "",
        actual_outcome=envelope.status if envelope else "",
        document_ids=tuple(dict.fromkeys(fragment.document_id for fragment in results)),
        chunk_ids=tuple(fragment.chunk_id for fragment in results),
        corpus_versions=envelope.corpus_versions if envelope else (),
        fragment=cited.text if cited else "",
        citation=cited.source_uri if cited else "",
        call_id=envelope.call_id if envelope else "",
        faults=judgement.faults,
    )


def _built_in(
    name: str, text: str, *, faults: Iterable[str], role: str = "", collection: str = "", expected: str = ""
) -> Row:
    return Row(
        id=f"suite:{name}",
        question=text,
        role=role or "anyone",
        collection=collection,
        expected_outcome=expected,
        faults=tuple(faults),
    )


def _plain(response: httpx.Response) -> RestAnswer:
    return RestAnswer(response.status_code, dict(response.headers), response.content)


def _document_text(response: httpx.Response) -> DocumentText | str:
    if response.status_code != 200:
        return f"not served to this caller (status {response.status_code})"
    try:
        return msgspec.convert(decode(response.content), DocumentText)
    except msgspec.ValidationError as error:
        return f"served in another shape ({error})"
