"""`/mcp` under broken messages and unusual methods."""

from typing import Any

import pytest
from mcp_case import MODERN, message, rpc, tool_call
from support.api import Api

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{{{",
        b"null",
        b"[]",
        b"17",
        bytes(range(256)),
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_documents", '
        b'"arguments": {"query": "a\\ud800"}}}',
        [LIST, LIST],
        {"id": 1, "method": "tools/list"},
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
    ],
    ids=lambda body: ascii(body)[:30],
)
def test_what_is_no_message_is_an_error_and_the_server_lives_on(api: Api, body: Any) -> None:
    answer = rpc(api, "general", body)

    assert answer.status_code == 400
    assert message(answer)["error"]["code"] in (-32700, -32600, -32602)
    assert rpc(api, "general", LIST).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (tool_call([]), -32602),
        (tool_call("query"), -32602),
        (tool_call({"query": "car"}, name=7), -32602),
        ({**LIST, "method": "resources/list"}, -32601),
        ({**LIST, "method": "no/such"}, -32601),
        ({**LIST, "method": "tools/call"}, -32602),
    ],
    ids=ascii,
)
def test_a_wrong_request_is_an_error_of_the_protocol(api: Api, body: Any, code: int) -> None:
    assert message(rpc(api, "general", body))["error"]["code"] == code


def test_a_call_without_arguments_is_answered_by_the_tool(api: Api) -> None:
    absent: list[dict[str, Any] | None] = [None, {}]
    for arguments in absent:
        assert message(rpc(api, "general", tool_call(arguments)))["result"]["structuredContent"]["status"] == (
            "invalid_request"
        )


def test_modern_headers_must_match_the_body(api: Api) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = tool_call({"query": "car"})
    call["params"]["_meta"] = meta
    spoken = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"}

    right = rpc(api, "general", call, **spoken, **{"mcp-name": "search_documents"})
    assert right.status_code == 200
    wrong = rpc(api, "general", call, **spoken, **{"mcp-name": "other"})
    assert (wrong.status_code, message(wrong)["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"])
def test_only_post_is_taken_and_only_from_who_is_known(api: Api, method: str) -> None:
    known = api("general", method, "/mcp", root="", headers={"accept": "text/event-stream"})
    assert (known.status_code, known.headers.get("allow")) == (405, "POST")
    assert api(None, method, "/mcp", root="").status_code == 401


def test_a_session_that_was_never_opened_gives_no_right(api: Api) -> None:
    body = tool_call({"query": "car", "collection": "board"})
    answer = rpc(api, "general", body, **{"mcp-session-id": api.tokens["restricted"]})

    assert message(answer)["result"]["structuredContent"]["status"] == "denied"


def test_other_paths_are_no_way_around_the_guard(api: Api) -> None:
    for path in ("/mcp/", "/mcp//", "/mcp/x", "//mcp", "/MCP", "/mcp%2f", "/mcp;x", "/./mcp"):
        assert api(None, "POST", path, root="", json=LIST).status_code in (401, 404), path
