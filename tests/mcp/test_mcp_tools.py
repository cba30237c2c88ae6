"""What the server says of itself, to clients of every revision and over both transports."""

import json

import pytest
from mcp_case import ERAS, MODERN, TOOL, called, connected, message, over_stdio, rpc, tool_call
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from support.api import Api, without_call_id

from app.search.arguments import INPUT_SCHEMA


@pytest.mark.parametrize("mode", ERAS)
async def test_both_eras_list_one_tool_and_search_with_it(api: Api, mode: str) -> None:
    async with connected(api, "general", mode) as client:
        assert (client.protocol_version >= MODERN) is (mode == MODERN)
        assert [tool.name for tool in (await client.list_tools()).tools] == [TOOL]
        envelope, is_error = await called(client, query="car allowance", collection="handbook", limit=2)

    assert (envelope["status"], is_error) == ("ok", False)


async def test_a_client_that_asks_first_gets_the_newest_revision(api: Api) -> None:
    async with connected(api, "general") as client:
        assert client.protocol_version == MODERN
        assert client.server_info is not None and client.server_info.name == "closed-stacks"
        assert client.instructions is not None and "never as instructions" in client.instructions


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_every_handshake_revision_is_spoken(api: Api, version: str) -> None:
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    agreed = rpc(api, "general", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    assert message(agreed)["result"]["protocolVersion"] == version
    assert "mcp-session-id" not in agreed.headers

    spoken = {"mcp-protocol-version": version}
    notified = rpc(api, "general", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **spoken)
    assert notified.status_code == 202
    result = message(rpc(api, "general", tool_call({"query": "car allowance"}), **spoken))["result"]
    assert json.loads(result["content"][0]["text"])["status"] == "ok"


async def test_the_tool_says_what_it_is(api: Api) -> None:
    async with connected(api, "general") as client:
        [tool] = (await client.list_tools()).tools

    hints = tool.annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.idempotent_hint, hints.destructive_hint, hints.open_world_hint) == (
        True,
        True,
        False,
        False,
    )
    assert tool.input_schema == INPUT_SCHEMA
    assert tool.input_schema["additionalProperties"] is False and tool.input_schema["required"] == ["query"]
    assert tool.output_schema is not None
    assert set(tool.output_schema["required"]) == {"status", "call_id", "message", "corpus_versions", "results"}
    for word in ("empty", "denied", "never", "token", "quoted data"):
        assert word in (tool.description or "")


@pytest.mark.parametrize("mode", ERAS)
async def test_stdio_speaks_for_the_holder_of_the_token(api: Api, mode: str) -> None:
    token = api.made("restricted", "/tokens", {"name": "stdio"})
    async with over_stdio(api, token["token"], mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [TOOL]
        found, is_error = await called(client, query="project Brindlefen", collection="board")
        assert (found["status"], is_error) == ("ok", False)
        wrong, is_error = await called(client, query="")
        assert (wrong["status"], is_error) == ("invalid_request", True)

        assert api("restricted", "DELETE", f"/tokens/{token['id']}").status_code == 204
        ended, is_error = await called(client, query="project Brindlefen", collection="board")
        assert (ended["status"], ended["results"], is_error) == ("unauthenticated", [], True)

    row = api("auditor", "GET", f"/calls/{found['call_id']}").json()
    assert (row["entrypoint"], row["operation"], row["principal"]) == ("stdio", TOOL, "restricted")


@pytest.mark.parametrize("arguments", [{"query": "car allowance"}, {"query": "zyxwvut"}, {"query": "考勤", "limit": 3}])
async def test_mcp_and_rest_answer_alike(api: Api, arguments: dict[str, object]) -> None:
    rest = api("restricted", "POST", "/search", json=arguments).json()
    for mode in ERAS:
        async with connected(api, "restricted", mode) as client:
            envelope, _ = await called(client, **arguments)
        assert without_call_id(envelope) == without_call_id(rest)
