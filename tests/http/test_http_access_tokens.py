"""Tokens of an identity provider, on both protocols: groups open what rules say, an agent narrows."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.api import Api
from support.provider import Provider

TEXT = "The brass telescope is lent to members of the observatory on moonless nights."


def _token(api: Api, provider: Provider, subject: str = "alice", **claims: Any) -> str:
    return provider.token(subject, api.server.mcp_url, **claims)


def _over_mcp(api: Api, token: str, collection: str) -> dict[str, Any]:
    arguments = {"query": "brass telescope", "collection": collection}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_documents"}}
    call["params"]["arguments"] = arguments  # type: ignore[index]
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    answer = api.http.post("/mcp", json=call, headers=headers)
    return {"status": answer.status_code, "challenge": answer.headers.get("www-authenticate"), "text": answer.text}


@pytest.fixture(scope="module")
def shelf(api: Api, provider: Provider) -> Iterator[str]:
    """A collection that the group `board` of the provider may search through a role, and its agents too."""
    slug = api.shelf()
    api.add(slug, "telescope.txt", TEXT)
    api.made("admin", "/roles", {"name": f"{slug}-readers"})
    groups = [f"{provider.issuer}|board", f"{provider.issuer}|agents"]
    assert api("admin", "PUT", f"/roles/{slug}-readers/members", json={"groups": groups}).is_success
    api.made("owner", "/grants", {"role": f"{slug}-readers", "action": "search", "effect": "allow", "collection": slug})
    yield slug


def test_a_group_that_a_token_claims_opens_what_its_role_may(api: Api, provider: Provider, shelf: str) -> None:
    member = _token(api, provider, groups=["board"])
    outsider = _token(api, provider, groups=["canteen"])

    found = api.search(member, "brass telescope", collection=shelf)
    assert (found.status_code, found.json()["results"][0]["text"]) == (200, TEXT)
    assert TEXT in _over_mcp(api, member, shelf)["text"]
    assert api.search(outsider, "brass telescope", collection=shelf).json()["code"] == "denied"
    assert "denied" in _over_mcp(api, outsider, shelf)["text"]
    assert api.search("board", "brass telescope", collection=shelf).status_code == 401


def test_a_group_of_the_same_name_elsewhere_is_another(api: Api, provider: Provider, shelf: str) -> None:
    assert api("admin", "PUT", "/groups/members", json={"group": "board", "principals": ["general"]}).is_success

    assert api.search("general", "brass telescope", collection=shelf).json()["code"] == "denied"


def test_an_agent_and_its_person_must_both_have_the_right_and_both_are_named(
    api: Api, provider: Provider, shelf: str
) -> None:
    trusted = _token(api, provider, groups=["board"], act={"sub": "agent-1", "groups": ["agents"]})
    unknown = _token(api, provider, groups=["board"], act={"sub": "agent-2"})

    found = api.search(trusted, "brass telescope", collection=shelf)
    refused = api.search(unknown, "brass telescope", collection=shelf)
    assert (found.status_code, refused.json()["code"]) == (200, "denied")
    for call, agent in ((found.json()["call_id"], "agent-1"), (refused.json()["call_id"], "agent-2")):
        row = api("auditor", "GET", f"/calls/{call}").json()
        assert (row["principal"], row["actor"]) == (f"{provider.issuer}|alice", f"{provider.issuer}|{agent}")


def test_a_scope_that_a_token_lacks_is_asked_for(api: Api, provider: Provider, shelf: str) -> None:
    narrow = _token(api, provider, groups=["board"], scope="open")

    answer = api.search(narrow, "brass telescope", collection=shelf)
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert 'error="insufficient_scope", scope="search"' in answer.headers["www-authenticate"]
    over_mcp = _over_mcp(api, narrow, shelf)
    assert (over_mcp["status"], over_mcp["challenge"]) == (403, answer.headers["www-authenticate"])


def test_a_bad_token_is_challenged_on_both_protocols(api: Api, provider: Provider, shelf: str) -> None:
    for bad in (_token(api, provider, exp=1), provider.token("alice", "https://elsewhere.example/mcp")):
        answer = api.search(bad, "brass telescope", collection=shelf)
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert _over_mcp(api, bad, shelf)["status"] == 401


def test_a_foreign_principal_makes_no_tokens_and_sees_none(api: Api, provider: Provider) -> None:
    every = _token(api, provider, groups=["board"], scope="search open ingest publish purge manage audit")

    assert api(every, "POST", "/tokens", json={"name": "mine"}).status_code == 403
    assert api(every, "GET", "/tokens").status_code == 403


def test_the_metadata_names_the_issuer(api: Api, provider: Provider) -> None:
    metadata = api.http.get("/.well-known/oauth-protected-resource/mcp").json()

    assert metadata["resource"] == api.server.mcp_url
    assert metadata["authorization_servers"] == [provider.issuer]
    assert "search" in metadata["scopes_supported"]
