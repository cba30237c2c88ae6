"""Checks of the suite's own, beside the fixed questions: what a caller without the right, or without a name, learns."""

import secrets
from collections.abc import Iterable, Iterator, Mapping

from mcp_types import Tool

from acceptance.client import McpAnswer, decode
from acceptance.observation import RestAnswer
from acceptance.questions import Question

# These differ between any two answers and carry nothing of the corpus.
VOLATILE = frozenset({"date", "mcp-session-id"})


def made_up_slug(like: str) -> str:
    """A collection that does not exist, as long as `like` (8 at least), so that a length can't be the difference."""
    return f"x{secrets.token_hex(len(like))}"[: max(len(like), 8)]


def closed_questions(questions: Iterable[Question], collections: Iterable[str]) -> tuple[Question, ...]:
    """One denied question for each role and existing collection."""
    existing = set(collections)
    pairs = {(q.role, q.collection): q for q in questions if q.outcome == "denied" and q.collection in existing}
    return tuple(pairs.values())


def equal_bytes(door: str, forbidden: RestAnswer, unknown: RestAnswer) -> Iterator[str]:
    """Status, headers and body of the two answers are the same to the byte, `call_id` aside."""
    if forbidden.status != unknown.status:
        yield f"{door}: status {forbidden.status} and {unknown.status}"
    ids = _call_id(forbidden), _call_id(unknown)
    if None in ids or ids[0] == ids[1]:
        yield f"{door}: the answers have no call_id of their own"
    left, right = _without(forbidden, ids[0]), _without(unknown, ids[1])
    if left.body != right.body:
        yield f"{door}: the bodies differ"
    names = {name for name in {*left.headers, *right.headers} if left.headers.get(name) != right.headers.get(name)}
    for name in sorted(names):
        yield f"{door}: header {name} differs"


def wire_answer(answer: McpAnswer) -> RestAnswer:
    """The HTTP answer that carried a tool call. Raises `NoAnswerError` when there was none."""
    call = answer.call
    return RestAnswer(call.status, call.headers, bytes(call.body))


def unauthorized(answers: Mapping[str, RestAnswer]) -> Iterator[str]:
    """Every door answers 401 and says, as MCP authorization asks, which scheme it wants."""
    for door, answer in answers.items():
        if answer.status != 401:
            yield f"{door}: status {answer.status}, expected 401"
        challenge = {name.lower(): value for name, value in answer.headers.items()}.get("www-authenticate", "")
        if not challenge.lower().startswith("bearer"):
            yield f"{door}: no WWW-Authenticate with the Bearer scheme"


def tool_declaration(tool: Tool | None) -> Iterator[str]:
    """The tool is listed as read-only, idempotent and closed-world, refuses other arguments, declares its output."""
    if tool is None:
        yield "search_documents is not listed"
        return
    marks = tool.annotations
    if marks is None or (marks.read_only_hint, marks.idempotent_hint, marks.open_world_hint) != (True, True, False):
        yield "the annotations do not say read-only, idempotent, closed-world"
    if tool.input_schema.get("additionalProperties") is not False:
        yield "the input schema admits other properties"
    if set(tool.input_schema.get("properties", {})) != {"query", "collection", "limit"}:
        yield "the input schema does not have exactly query, collection and limit"
    if not tool.output_schema:
        yield "no output schema is declared"


def _call_id(answer: RestAnswer) -> str | None:
    """The id as found anywhere in the decoded body, structuredContent included."""
    for line in (answer.body, *answer.body.splitlines()):
        if found := _find(decode(line.removeprefix(b"data:"))):
            return found
    return None


def _find(value: object) -> str | None:
    if isinstance(value, dict):
        if isinstance(value.get("call_id"), str):
            return str(value["call_id"])
        return next((found for inner in value.values() if (found := _find(inner))), None)
    return None


def _without(answer: RestAnswer, call_id: str | None) -> RestAnswer:
    mask = call_id or "\0"
    lowered = {name.lower(): value.replace(mask, "CALL") for name, value in answer.headers.items()}
    headers = {name: value for name, value in lowered.items() if name not in VOLATILE}
    return RestAnswer(answer.status, headers, answer.body.replace(mask.encode(), b"CALL"))
