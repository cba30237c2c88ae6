"""Every check of the acceptance suite passes on the right answer and fails on its own kind of wrong one."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from acceptance.checks import judge
from acceptance.client import McpAnswer
from acceptance.envelope import DocumentText
from acceptance.observation import Library, Observation, RestAnswer
from acceptance.questions import Question
from acceptance.wire import Exchange

DOCUMENT, OTHER, CHUNK = ("11111111-1111-4111-8111-11111111111" + digit for digit in "123")
TEXT = "Отпуск: 28 дней.\nThe allowance is 😀 40 euro a day."
START, END = 17, len(TEXT)
SHA = "a" * 64
QUESTION = Question(
    id="q1",
    role="general",
    query="allowance",
    outcome="ok",
    collection="handbook",
    document="travel.md",
    edition=2,
    rank=1,
    contains="40 euro",
    never=("floor  PRICE 17",),
)
CLOSED = Question(id="q2", role="general", query="x", outcome="denied", collection="board")
NOTHING = Question(id="q3", role="general", query="x", outcome="empty")
LIBRARY = Library({DOCUMENT: "travel.md", OTHER: "other.md"}, {("travel.md", 2): SHA})
Answer = dict[str, Any]
Change = Callable[[Answer], object]


def fragment() -> Answer:
    return {
        "document_id": DOCUMENT,
        "document_version": 2,
        "corpus_version": "handbook@7",
        "collection": "handbook",
        "title": "Travel",
        "text": TEXT[START:END],
        "source_uri": f"http://host:1/documents/{DOCUMENT}/versions/2?start={START}&end={END}",
        "media_type": "text/markdown",
        "page": None,
        "heading_path": ["Travel"],
        "char_start": START,
        "char_end": END,
        "content_sha256": SHA,
        "published_at": "2026-11-30T12:00:00Z",
        "superseded": False,
        "chunk_id": CHUNK,
        "score": 0.5,
    }


def envelope(status: str = "ok") -> Answer:
    return {
        "status": status,
        "call_id": "22222222-2222-4222-8222-222222222221",
        "message": "",
        "corpus_versions": [] if status == "denied" else ["handbook@7"],
        "results": [fragment()] if status == "ok" else [],
    }


def served(**changes: Any) -> Mapping[tuple[str, int], DocumentText | str]:
    fields: dict[str, Any] = {"document_id": DOCUMENT, "version": 2, "text": TEXT, "content_sha256": SHA} | changes
    return {(DOCUMENT, 2): DocumentText(**fields)}


def seen(
    over_mcp: Answer,
    *,
    over_rest: Answer | None = None,
    rest_status: int = 200,
    is_error: bool = False,
    text: str | None = None,
    failure: str | None = None,
    texts: Mapping[tuple[str, int], DocumentText | str] | None = None,
) -> Observation:
    rest = copy.deepcopy(over_mcp) if over_rest is None else over_rest
    if over_rest is None:
        rest["call_id"] = "22222222-2222-4222-8222-222222222222"
    block = json.dumps(over_mcp) if text is None else text
    body = json.dumps({"result": {"content": [{"type": "text", "text": block}], "structuredContent": over_mcp}})
    exchange = Exchange("tools/call", 200, {}, bytearray(f"event: message\ndata: {body}\n\n".encode()))
    mcp = McpAnswer(over_mcp, block, is_error, (exchange,), failure)
    return Observation(
        mcp, RestAnswer(rest_status, {}, json.dumps(rest).encode()), served() if texts is None else texts
    )


def faults(question: Question, observation: Observation, library: Library = LIBRARY) -> tuple[str, ...]:
    return judge(question, observation, library, set()).faults


def put(name: str, value: object) -> Change:
    return lambda answer: answer.__setitem__(name, value)


def put_in_fragment(name: str, value: object) -> Change:
    return lambda answer: answer["results"][0].__setitem__(name, value)


def second(**changes: object) -> Change:
    return lambda answer: answer["results"].append(fragment() | {"chunk_id": OTHER} | changes)


def problem(code: str) -> Answer:
    return {"code": code, "call_id": "22222222-2222-4222-8222-222222222222", "status": 403}


def test_the_right_answers_pass() -> None:
    assert faults(QUESTION, seen(envelope())) == ()
    assert faults(NOTHING, seen(envelope("empty"))) == ()
    denied = seen(envelope("denied"), over_rest=problem("denied"), rest_status=403, is_error=True)
    assert faults(CLOSED, denied) == ()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (put("status", "empty"), "outcome empty, expected ok"),
        (put("status", "denied"), "isError is False"),
        (put("results", []), "0 fragments with outcome ok"),
        (put("details", {}), "details in an answer that is no error"),
        (put("results", []), "is not within the first 1"),
        (put_in_fragment("document_id", OTHER), "travel.md, edition 2 is not within the first 1"),
        (put_in_fragment("document_version", 1), "travel.md, edition 2 is not within the first 1"),
        (lambda answer: answer["results"].insert(0, fragment() | {"document_id": OTHER}), "not within the first 1"),
        (put_in_fragment("text", "The allowance"), "contains the expected words"),
        (put("corpus_versions", []), "0 corpus versions with outcome ok"),
        (put("corpus_versions", ["handbook@6"]), "which corpus_versions does not list"),
        (put("corpus_versions", ["handbook@7", "handbook@6"]), "named twice"),
        (put("corpus_versions", ["handbook@7", "board@1"]), "board@1 was searched"),
        (put_in_fragment("collection", "board"), "but of collection board"),
        (second(score=0.6), "not ordered by falling score"),
        (second(chunk_id=CHUNK), "a chunk is returned twice"),
        (put_in_fragment("text", TEXT[START : END - 1]), "text is not the document's"),
        (put_in_fragment("char_start", START + 1), "text is not the document's"),
        (put_in_fragment("content_sha256", "b" * 64), "content_sha256 differs from that of the text served"),
        (put_in_fragment("content_sha256", "b" * 64), "content_sha256 is not that of travel.md, edition 2"),
        (put_in_fragment("document_id", CHUNK), "is not in the owner's listing"),
        (put_in_fragment("document_version", 3), "travel.md has no edition 3 in the fixture"),
        (put_in_fragment("source_uri", f"http://host/documents/{DOCUMENT}/versions/2"), "source_uri does not point"),
        (put_in_fragment("source_uri", "javascript:alert(1)"), "source_uri does not point"),
    ],
)
def test_a_wrong_answer_fails(change: Change, fault: str) -> None:
    answer = envelope()
    change(answer)
    assert fault in "; ".join(faults(QUESTION, seen(answer)))


@pytest.mark.parametrize(
    "change",
    [
        put("hidden_total", 3),
        put("call_id", "not-a-uuid"),
        put("corpus_versions", ["handbook"]),
        put_in_fragment("page", "3"),
        put_in_fragment("published_at", "2026-11-30T12:00:00"),
        put_in_fragment("content_sha256", "A" * 64),
        lambda answer: answer["results"][0].pop("score"),
        lambda answer: answer.pop("message"),
    ],
)
def test_another_shape_fails(change: Change) -> None:
    answer = envelope()
    change(answer)
    assert "not the published envelope" in "; ".join(faults(QUESTION, seen(answer)))


def test_offsets_count_code_points_not_bytes() -> None:
    answer = envelope()
    answer["results"][0] |= {"char_start": len(TEXT[:START].encode()), "char_end": len(TEXT.encode())}
    assert "text is not the document's" in "; ".join(faults(QUESTION, seen(answer)))


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        ({}, "not fetched"),
        ({(DOCUMENT, 2): "not served to this caller (status 404)"}, "status 404"),
        (served(version=1), "of another document or version"),
        (served(text=TEXT[1:]), "text is not the document's"),
        (served(content_sha256="b" * 64), "differs from that of the text served"),
    ],
)
def test_text_that_does_not_bear_the_fragment_out_fails(
    texts: Mapping[tuple[str, int], DocumentText | str], fault: str
) -> None:
    assert fault in "; ".join(faults(QUESTION, seen(envelope(), texts=texts)))


@pytest.mark.parametrize(
    ("rest", "status", "fault"),
    [
        (envelope() | {"message": "other"}, 200, "REST and MCP answer differently"),
        (envelope() | {"results": []}, 200, "REST and MCP answer differently"),
        (envelope(), 403, "REST answers 403, MCP ok"),
        ({"code": "ok"}, 200, "REST answers in another shape"),
        (envelope(), 200, "was used before"),
        ({}, 200, "REST answered without a call_id"),
    ],
)
def test_rest_that_disagrees_fails(rest: Answer, status: int, fault: str) -> None:
    assert fault in "; ".join(faults(QUESTION, seen(envelope(), over_rest=rest, rest_status=status)))


def test_rest_that_denies_by_another_name_fails() -> None:
    observation = seen(envelope("denied"), over_rest=problem("not_found"), rest_status=403, is_error=True)
    assert faults(CLOSED, observation) == ("REST and MCP answer differently",)


def test_a_denial_that_names_editions_fails() -> None:
    answer = envelope("denied") | {"corpus_versions": ["board@1"]}
    observation = seen(answer, over_rest=problem("denied"), rest_status=403, is_error=True)
    assert "1 corpus versions with outcome denied" in "; ".join(faults(CLOSED, observation))


def test_an_error_that_mcp_does_not_mark_fails() -> None:
    observation = seen(envelope("denied"), over_rest=problem("denied"), rest_status=403, is_error=False)
    assert "isError is False with outcome denied" in "; ".join(faults(CLOSED, observation))


def test_text_content_that_differs_fails() -> None:
    for text in ("", "{}", "Found one document."):
        assert "not the same JSON" in "; ".join(faults(QUESTION, seen(envelope(), text=text)))


def test_an_answer_the_client_refuses_fails() -> None:
    assert "schema" in "; ".join(faults(QUESTION, seen(envelope(), failure="RuntimeError: output schema")))


def test_a_call_id_seen_before_in_the_run_fails() -> None:
    call_ids: set[str] = set()
    assert judge(QUESTION, seen(envelope()), LIBRARY, call_ids).faults == ()
    assert len(call_ids) == 2
    assert len(judge(QUESTION, seen(envelope()), LIBRARY, call_ids).faults) == 2


def test_the_cited_fragment_is_the_one_with_the_expected_words() -> None:
    answer = envelope()
    answer["results"].insert(0, fragment() | {"chunk_id": OTHER, "text": "elsewhere", "score": 0.9})
    cited = judge(QUESTION, seen(answer), LIBRARY, set()).cited
    assert cited is not None
    assert cited.chunk_id == CHUNK


@pytest.mark.parametrize("leak", ["floor price 17", "FLOOR\nPRICE\u00a017", "ｆｌｏｏｒ price 17"])
@pytest.mark.parametrize("where", ["fragment", "message", "text", "rest", "header", "escaped", "failure"])
def test_a_forbidden_text_anywhere_fails(leak: str, where: str) -> None:
    answer = envelope()
    if where == "fragment":
        answer["results"][0]["text"] += leak
    if where == "message":
        answer["message"] = leak
    text, rest, failure = json.dumps(answer), copy.deepcopy(answer), None
    if where == "text":
        text = json.dumps(answer | {"aside": [{"deep": leak}]})
    if where == "rest":
        rest["message"] = leak
    if where == "failure":
        failure = f"Invalid structured content: {leak}"
    observation = seen(answer, over_rest=rest, text=text, failure=failure)
    exchange = observation.mcp.exchanges[0]
    if where == "header":
        exchange.headers = {"x-note": leak.replace("\n", " ")}
    if where == "escaped":
        exchange.body += b'data: "' + "".join(f"\\u{ord(sign):04x}" for sign in leak).encode() + b'"\n'
    found = faults(QUESTION, observation)
    assert "forbidden text number 1 appears in the answer" in found
    assert not any("17" in fault for fault in found if "number 1" in fault)


def test_a_forbidden_text_is_found_in_a_misshapen_answer_too() -> None:
    found = faults(QUESTION, seen({"message": "floor price 17"}))
    assert found[0] == "forbidden text number 1 appears in the answer"
