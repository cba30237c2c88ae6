"""The outcomes of `search_documents` as an MCP client meets them, in both eras; none ends the session."""

from typing import Any

import pytest
from mcp import MCPError
from mcp_case import ERAS, called, connected, message, rpc, tool_call
from support.api import Api, without_call_id

WRONG: list[dict[str, Any]] = [
    {},
    {"query": None},
    {"query": 7},
    {"query": ["car"]},
    {"query": ""},
    {"query": " \n\t"},
    {"query": "\u200b\u200d"},
    {"query": "\u2060\u00ad"},
    {"query": "a\x00b"},
    {"query": "a" * 2001},
    {"query": "car", "limit": "7"},
    {"query": "car", "limit": True},
    {"query": "car", "limit": 7.0},
    {"query": "car", "limit": 7.5},
    {"query": "car", "limit": None},
    {"query": "car", "limit": [7]},
    {"query": "car", "limit": 0},
    {"query": "car", "limit": 51},
    {"query": "car", "limit": 10**30},
    {"query": "car", "collection": None},
    {"query": "car", "collection": 7},
    {"query": "car", "collection": "Hand book"},
    {"query": "car", "role": "owner"},
    {"query": "car", "subject": "restricted", "on_behalf_of": "restricted"},
]


@pytest.mark.parametrize("mode", ERAS)
async def test_ok_empty_and_denied_are_three_answers(api: Api, mode: str) -> None:
    async with connected(api, "general", mode) as client:
        found, found_is_error = await called(client, query="How much is paid per kilometre for one's own car?")
        empty, empty_is_error = await called(client, query="zyxwvut qponmlk")
        denied, denied_is_error = await called(client, query="car", collection="board")

    assert (found["status"], found_is_error) == ("ok", False)
    assert "0.30 EUR" in found["results"][0]["text"]
    assert (empty["status"], empty_is_error, empty["results"]) == ("empty", False, [])
    assert empty["corpus_versions"] == found["corpus_versions"] == ["handbook@2"]
    assert (denied["status"], denied_is_error, denied["results"]) == ("denied", True, [])
    assert denied["corpus_versions"] == []


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("arguments", WRONG, ids=lambda arguments: ascii(arguments)[:40])
async def test_a_wrong_argument_is_refused_and_the_session_goes_on(
    api: Api, mode: str, arguments: dict[str, Any]
) -> None:
    async with connected(api, "general", mode) as client:
        envelope, is_error = await called(client, **arguments)
        assert (envelope["status"], is_error, envelope["results"]) == ("invalid_request", True, [])
        assert envelope["details"]["field"] and envelope["details"]["allowed"]
        assert (await called(client, query="car allowance"))[0]["status"] == "ok"

    row = api("auditor", "GET", f"/calls/{envelope['call_id']}").json()
    assert (row["outcome"], row["principal"], row["entrypoint"]) == ("invalid_request", "general", "mcp")


@pytest.mark.parametrize("mode", ERAS)
async def test_an_unknown_tool_is_an_error_of_the_protocol_and_the_session_goes_on(api: Api, mode: str) -> None:
    async with connected(api, "general", mode) as client:
        for name in ("search", "SEARCH_DOCUMENTS", "core_ingest", ""):
            with pytest.raises(MCPError) as refused:
                await client.call_tool(name, {"query": "car"})
            assert refused.value.code == -32602
            assert "Unknown tool" in str(refused.value)
        assert (await called(client, query="car allowance"))[0]["status"] == "ok"

    newest = api("auditor", "GET", "/calls?limit=20").json()["items"]
    assert [row["outcome"] for row in newest if row["operation"] == "unknown tool"][:4] == ["invalid_request"] * 4


def test_a_forbidden_and_an_unknown_collection_are_equal_to_the_byte(api: Api) -> None:
    answers = [rpc(api, "general", tool_call({"query": "car", "collection": slug})) for slug in ("board", "boars")]
    plain = []
    for answer in answers:
        envelope = message(answer)["result"]["structuredContent"]
        assert envelope["status"] == "denied"
        headers = [(name, value) for name, value in answer.headers.multi_items() if name != "date"]
        plain.append((answer.status_code, headers, answer.content.replace(envelope["call_id"].encode(), b"<id>")))
    assert plain[0] == plain[1]


async def test_what_an_argument_or_a_header_claims_adds_no_right(api: Api) -> None:
    claims = {"x-user": "restricted", "x-forwarded-user": "owner", "x-role": "administrator"}
    async with connected(api, "general", **claims) as claimed, connected(api, "general") as plain:
        query = "I am restricted. As a member of the board, what does project Brindlefen cost?"
        assert without_call_id((await called(claimed, query=query))[0]) == without_call_id(
            (await called(plain, query=query))[0]
        )
        assert (await called(claimed, query="car", collection="board"))[0]["status"] == "denied"


async def test_two_callers_at_once_keep_their_own_rights(api: Api) -> None:
    async with connected(api, "general") as general, connected(api, "restricted") as restricted:
        for _ in range(5):
            closed = {"query": "project Brindlefen", "collection": "board"}
            assert (await called(restricted, **closed))[0]["status"] == "ok"
            assert (await called(general, **closed))[0]["status"] == "denied"


async def test_a_revoked_grant_closes_an_open_session_at_once(api: Api) -> None:
    shelf = api.shelf()
    api.add(shelf, "a.txt", "The kettle is in the cellar.")
    grant = api.made("owner", "/grants", {"action": "search", "principal": "guest", "collection": shelf})
    async with connected(api, api.mint("guest")) as client:
        assert (await called(client, query="where is the kettle"))[0]["status"] == "ok"
        assert api("owner", "DELETE", f"/grants/{grant['id']}").status_code == 200
        assert (await called(client, query="where is the kettle"))[0]["status"] == "denied"
