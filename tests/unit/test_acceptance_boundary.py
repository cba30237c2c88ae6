"""The suite's built-in checks fail on the smallest difference and on a door left open."""

import pytest
from mcp_types import Tool

from acceptance.boundary import (
    closed_questions,
    equal_bytes,
    made_up_slug,
    tool_declaration,
    unauthorized,
    wire_answer,
)
from acceptance.client import McpAnswer, NoAnswerError
from acceptance.observation import RestAnswer
from acceptance.questions import Question
from acceptance.wire import Exchange

ONE, TWO = "0f6a-call-one", "0f6a-call-two"


def answer(call_id: str, *, status: int = 403, extra: str = "", headers: dict[str, str] | None = None) -> RestAnswer:
    body = f'{{"code": "denied", "call_id": "{call_id}"{extra}}}'.encode()
    return RestAnswer(status, {"Date": call_id, "X-Call": call_id} | (headers or {}), body)


def test_answers_that_differ_in_call_id_and_date_alone_are_equal() -> None:
    assert list(equal_bytes("REST", answer(ONE), answer(TWO))) == []


def test_an_event_stream_is_compared_too() -> None:
    def stream(call_id: str) -> RestAnswer:
        body = f'event: message\ndata: {{"result": {{"structuredContent": {{"call_id": "{call_id}"}}}}}}\n\n'
        return RestAnswer(200, {"mcp-session-id": call_id}, body.encode())

    assert list(equal_bytes("MCP", stream(ONE), stream(TWO))) == []


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        (answer(TWO, status=404), "status 403 and 404"),
        (answer(TWO, extra=" "), "the bodies differ"),
        (answer(TWO, extra=', "hint": "exists"'), "the bodies differ"),
        (answer(TWO, headers={"ETag": "1"}), "header etag differs"),
        (answer(ONE), "no call_id of their own"),
        (RestAnswer(403, {}, b"{}"), "no call_id of their own"),
    ],
)
def test_any_other_difference_fails(other: RestAnswer, fault: str) -> None:
    assert fault in "; ".join(equal_bytes("REST", answer(ONE), other))


def test_a_call_that_never_happened_is_no_answer() -> None:
    exchange = Exchange("tools/call", 200, {}, bytearray(b"{}"))
    assert wire_answer(McpAnswer(None, "", True, (exchange,))).body == b"{}"
    with pytest.raises(NoAnswerError, match="refused"):
        wire_answer(McpAnswer(None, "", True, (), "refused"))


def test_strangers_must_be_turned_away_with_a_challenge() -> None:
    right = RestAnswer(401, {"WWW-Authenticate": 'Bearer realm="stacks"'}, b"")
    assert list(unauthorized({"MCP": right, "REST": right})) == []
    assert "MCP: status 200" in "; ".join(unauthorized({"MCP": RestAnswer(200, {}, b"")}))
    assert "Bearer" in "; ".join(unauthorized({"REST": RestAnswer(401, {"WWW-Authenticate": "Basic"}, b"")}))
    assert "Bearer" in "; ".join(unauthorized({"REST": RestAnswer(401, {}, b"")}))


def test_only_denials_of_existing_collections_are_compared() -> None:
    def asked(name: str, role: str, outcome: str, collection: str | None) -> Question:
        return Question(id=name, role=role, query="x", outcome=outcome, collection=collection)  # type: ignore[arg-type]

    questions = [
        asked("1", "general", "denied", "board"),
        asked("2", "general", "denied", "board"),
        asked("3", "general", "denied", "no-such"),
        asked("4", "general", "denied", None),
        asked("5", "restricted", "empty", "board"),
    ]
    assert [(q.role, q.collection) for q in closed_questions(questions, ["board", "handbook"])] == [
        ("general", "board")
    ]


def test_made_up_collections_are_as_long_and_never_the_same() -> None:
    assert len(made_up_slug("closed-board-papers")) == len("closed-board-papers")
    assert made_up_slug("board") != made_up_slug("board")


def listed(**changes: object) -> Tool:
    fields = {
        "name": "search_documents",
        "inputSchema": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"query": {}, "collection": {}, "limit": {}},
        },
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    }
    return Tool.model_validate(fields | changes)


def test_the_tool_as_promised_passes() -> None:
    assert list(tool_declaration(listed())) == []


@pytest.mark.parametrize(
    ("tool", "fault"),
    [
        (None, "not listed"),
        (listed(annotations=None), "annotations"),
        (listed(annotations={"readOnlyHint": True, "idempotentHint": True}), "annotations"),
        (listed(inputSchema={"type": "object", "properties": {"query": {}, "collection": {}, "limit": {}}}), "admits"),
        (listed(inputSchema={"type": "object", "additionalProperties": False}), "exactly"),
        (listed(outputSchema=None), "no output schema"),
    ],
)
def test_a_tool_declared_otherwise_fails(tool: Tool | None, fault: str) -> None:
    assert fault in "; ".join(tool_declaration(tool))
