"""The call log over REST: every call has its row, nobody reads more rows than theirs, and none tells a secret."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from support.api import NOWHERE, Api

CALLS = "/calls?limit=200"


@pytest.fixture(scope="module")
def shelf(api: Api) -> str:
    shelf = api.shelf()
    api.add(shelf, "fragment.txt", "Threnodial wording that stands in this document alone.")
    return shelf


def _row(api: Api, answer: Any) -> dict[str, Any]:
    found = api("auditor", "GET", f"/calls/{answer.json()['call_id']}")
    assert found.status_code == 200, answer.text
    row: dict[str, Any] = found.json()
    return row


def test_a_search_is_written_down_with_what_it_gave(api: Api, shelf: str) -> None:
    answer = api.search("owner", "threnodial wording", collection=shelf)
    [fragment] = answer.json()["results"]

    row = _row(api, answer)
    assert (row["principal"], row["actor"], row["entrypoint"]) == ("owner", None, "http")
    assert (row["operation"], row["collection"], row["outcome"]) == ("POST /api/v1/search", shelf, "ok")
    assert (row["document_ids"], row["chunk_ids"]) == ([fragment["document_id"]], [fragment["chunk_id"]])
    assert row["corpus_versions"] == [f"{shelf}@1"]
    assert row["policy_version"] >= 1 and row["latency_ms"] > 0 and len(row["query_digest"]) == 64


def _failures(api: Api, shelf: str) -> Iterator[tuple[Any, str]]:
    form = {"content-type": "multipart/form-data; boundary=b"}
    yield api.search("owner", "quillwort zymurgy", collection=shelf), "empty"
    yield api.search("general", "anything", collection=shelf), "denied"
    yield api.search("general", ""), "invalid_request"
    yield api("general", "POST", "/search", content=b"{"), "invalid_request"
    yield api("general", "POST", "/search", content=b"x", headers={"content-type": "text/plain"}), "unsupported_type"
    yield api("general", "GET", f"/documents/{NOWHERE}"), "not_found"
    yield api("general", "GET", f"/documents/{NOWHERE}/versions/0"), "invalid_request"
    yield api("general", "GET", "/collections/a%00b"), "invalid_request"
    yield api("general", "GET", "/collections?cursor=%00"), "invalid_request"
    yield api("general", "GET", "/tokens?limit=0"), "invalid_request"
    yield api("owner", "POST", "/collections", json={"slug": shelf, "title": "taken"}), "conflict"
    yield api("owner", "POST", f"/collections/{shelf}/documents", content=b"x", headers=form), "invalid_request"
    narrow = api.mint(by="owner", actions=["search"])
    yield api(narrow, "POST", f"/collections/{shelf}/publish"), "insufficient_scope"


def test_a_call_that_found_or_reached_nothing_is_written_down_too(api: Api, shelf: str) -> None:
    for answer, outcome in _failures(api, shelf):
        assert answer.json().get("code", answer.json().get("status")) == outcome, answer.text
        row = _row(api, answer)
        assert row["outcome"] == outcome
        assert row["principal"] in ("general", "owner")


def test_a_change_and_a_reading_are_written_down(api: Api, shelf: str) -> None:
    document = api.documents(shelf)["fragment.txt"]["id"]
    assert api("owner", "GET", f"/documents/{document}/versions/1/original").status_code == 200
    api.made("owner", f"/collections/{shelf}/publish")

    newest = api("auditor", "GET", CALLS).json()["items"][:3]
    assert [(row["operation"], row["outcome"]) for row in newest][1:] == [
        ("GET /api/v1/documents/{document_id}/versions/{version}/original", "ok"),
        ("GET /api/v1/collections/{slug}/documents", "ok"),
    ] or newest[0]["operation"].endswith("/publish")
    assert [row["document_ids"] for row in newest if row["operation"].endswith("/original")] == [[document]]


def test_no_row_holds_a_question_a_fragment_a_title_or_a_token(api: Api, shelf: str) -> None:
    word = f"word{uuid4().hex}"
    token = api.mint("general")
    api.search("owner", f"threnodial {word}", collection=shelf)
    api.search(token, word, collection=word[:30])
    api.search(token, "car", **{word: 1})
    api(token, "GET", f"/collections/{word.upper()}")
    api(token, "GET", f"/calls?outcome={word}&cursor={word}")
    api.upload(shelf, f"{word}.txt", f"{word} " * 3, title=f"{word} title")
    api.made("owner", "/tokens", {"name": word})

    with api.server.superuser() as connection:
        rows = "\n".join(str(row) for row in connection.execute("SELECT to_jsonb(c) FROM calls c"))
    assert rows.count("'POST /api/v1/search'") > 2
    for secret in (word, word.upper(), "threnodial", "Threnodial", token, token.split("_", 2)[2]):
        assert secret not in rows.replace(f"'{word[:30]}'", "")


def test_an_owner_sees_the_calls_on_its_collections_and_nobody_elses(api: Api, shelf: str) -> None:
    creator = f"creator-{uuid4().hex[:8]}"
    members = api("admin", "GET", "/roles/collection-creator/members").json()
    members["principals"].append(creator)
    assert api("admin", "PUT", "/roles/collection-creator/members", json=members).status_code == 200
    token = api.mint(creator)
    own = api.shelf(token)
    theirs = api.search("owner", "threnodial", collection=shelf).json()["call_id"]
    denied = api.search("general", "anything", collection=own).json()["call_id"]

    rows = api(token, "GET", CALLS).json()["items"]
    assert {row["collection"] for row in rows} == {own}
    assert denied in {row["call_id"] for row in rows}
    assert api(token, "GET", f"/calls/{theirs}").status_code == 404
    assert api("owner", "GET", f"/calls/{theirs}").status_code == 200
    assert api("owner", "GET", f"/calls/{denied}").status_code == 404
    assert {theirs, denied} <= {row["call_id"] for row in api("auditor", "GET", CALLS).json()["items"]}


@pytest.mark.parametrize("who", ["general", "restricted", "tester", "admin"])
def test_who_neither_audits_nor_owns_reads_no_calls(api: Api, who: str) -> None:
    assert api(who, "GET", "/calls").status_code == 403
    assert api(who, "GET", f"/calls/{NOWHERE}").status_code == 403


def test_calls_are_paged_and_filtered(api: Api, shelf: str) -> None:
    first = api("auditor", "GET", "/calls?limit=2").json()
    second = api("auditor", "GET", "/calls", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    places = [(row["at"], row["call_id"]) for row in first["items"] + second["items"]]
    assert places == sorted(set(places), reverse=True) and len(places) == 4

    api.search("general", "anything", collection=shelf)
    denied = api("auditor", "GET", "/calls?outcome=denied&limit=5").json()["items"]
    assert {row["outcome"] for row in denied} == {"denied"}
    assert api("auditor", "GET", "/calls?outcome=' OR 1=1 --").json()["items"] == []
