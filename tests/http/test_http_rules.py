"""Roles, grants and tokens over REST: nobody gives what is not theirs, and what is ended is ended at once."""

from typing import Any

import pytest
from support.api import NOWHERE, Api, without_call_id

GRANT = {"action": "search", "principal": "somebody"}
PAST, FUTURE = "2001-01-01T00:00:00Z", "2100-01-01T00:00:00+03:00"


@pytest.fixture(scope="module")
def shelf(api: Api) -> str:
    """A published collection of the owner with one open and one labelled document."""
    shelf = api.shelf()
    api.add(shelf, "open.txt", "The open shelf holds almanacs.")
    api.add(shelf, "closed.txt", "The closed shelf holds ledgers.", labels="closed")
    return shelf


def test_a_grant_opens_and_its_end_closes_from_the_very_next_call_on(api: Api, shelf: str) -> None:
    reader = api.mint("reader-1")
    assert api.search(reader, "almanacs", collection=shelf).json()["code"] == "denied"

    made = api.made("owner", "/grants", {**GRANT, "principal": "reader-1", "collection": shelf, "reason": "a visit"})
    assert (made["effect"], made["granted_by"], made["reason"], made["revoked_at"]) == (
        "allow",
        "owner",
        "a visit",
        None,
    )
    assert api.search(reader, "almanacs", collection=shelf).json()["status"] == "ok"

    ended = api("owner", "DELETE", f"/grants/{made['id']}")
    assert (ended.status_code, ended.json()["revoked_by"]) == (200, "owner")
    assert api.search(reader, "almanacs", collection=shelf).json()["code"] == "denied"
    assert api("owner", "DELETE", f"/grants/{made['id']}").status_code == 404
    assert made["id"] in {one["id"] for one in api("owner", "GET", "/grants?limit=200").json()["items"]}


def test_a_deny_on_a_label_beats_an_allow_on_the_collection(api: Api, shelf: str) -> None:
    reader = api.mint("reader-2")
    for rule in ({}, {"effect": "deny", "label": "closed"}):
        api.made("owner", "/grants", {**GRANT, "principal": "reader-2", "collection": shelf, **rule})

    assert api.search(reader, "almanacs", collection=shelf).json()["status"] == "ok"
    assert api.search(reader, "ledgers on the closed shelf", collection=shelf).text.count("ledgers") == 0
    assert [one["source_id"] for one in api(reader, "GET", f"/collections/{shelf}/documents").json()["items"]] == [
        "open.txt"
    ]


def test_a_grant_of_one_document_reaches_no_other(api: Api, shelf: str) -> None:
    reader, document = api.mint("reader-3"), api.documents(shelf)["closed.txt"]["id"]
    api.made("owner", "/grants", {**GRANT, "principal": "reader-3", "collection": shelf, "document": document})

    assert {one["document_id"] for one in api.search(reader, "shelf holds").json()["results"]} <= {document}
    assert api(reader, "GET", f"/documents/{document}/versions/1/text").status_code == 200


def test_a_role_gives_its_rules_to_its_members(api: Api, shelf: str) -> None:
    role = f"role-of-{shelf}"
    assert api("owner", "POST", "/roles", json={"name": role}).status_code == 201
    assert api("owner", "POST", "/roles", json={"name": role}).status_code == 409
    api.made("owner", "/grants", {"action": "search", "role": role, "collection": shelf})
    reader = api.mint("reader-4")

    members = {"principals": ["reader-4"], "groups": [], "roles": []}
    assert api("owner", "PUT", f"/roles/{role}/members", json=members).json() == members
    assert api("owner", "GET", f"/roles/{role}/members").json() == members
    assert api.search(reader, "almanacs", collection=shelf).json()["status"] == "ok"

    api("owner", "PUT", f"/roles/{role}/members", json={})
    assert api.search(reader, "almanacs", collection=shelf).json()["code"] == "denied"


@pytest.mark.parametrize("who", ["general", "restricted", "auditor", "tester"])
def test_nobody_grants_on_what_is_not_theirs(api: Api, shelf: str, who: str) -> None:
    hidden = api(who, "POST", "/grants", json={**GRANT, "collection": shelf})
    unknown = api(who, "POST", "/grants", json={**GRANT, "collection": "boars"})

    assert hidden.status_code in (403, 404)
    if who != "auditor":  # who sees every collection's calls knows that it exists
        assert without_call_id(hidden.json()) == without_call_id(unknown.json())
    assert api(who, "GET", "/grants").json()["items"] == []
    grant = api("owner", "GET", "/grants").json()["items"][0]["id"]
    assert api(who, "DELETE", f"/grants/{grant}").status_code == 404


def test_an_owner_changes_no_role_that_reaches_further(api: Api) -> None:
    for role in ("administrator", "auditor", "staff"):
        assert api("owner", "PUT", f"/roles/{role}/members", json={"principals": ["owner"]}).status_code == 403
    assert api("general", "PUT", "/roles/staff/members", json={"principals": []}).status_code == 403
    assert api("general", "GET", "/roles").status_code == 403
    assert api("general", "GET", "/roles/staff/members").status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "fly"},
        {"action": "create"},
        {"effect": "maybe"},
        {"role": "staff"},
        {"principal": None},
        {"principal": "a b"},
        {"principal": "a\x00b"},
        {"principal": None, "role": "a\x00b"},
        {"principal": None, "role": "no-such-role"},
        {"label": ""},
        {"label": "Closed"},
        {"label": "closed\n"},
        {"label": "a\x00b"},
        {"label": "closed", "document": NOWHERE},
        {"document": "17"},
        {"reason": "a\x00b"},
        {"reason": "r" * 1001},
        {"valid_until": PAST},
        {"valid_until": "2100-01-01T00:00:00"},
        {"valid_from": "2100-01-01T00:00:00", "valid_until": FUTURE},
        {"valid_from": FUTURE, "valid_until": FUTURE},
        {"valid_from": "soon"},
        {"until": FUTURE},
    ],
    ids=ascii,
)
def test_a_wrong_grant_is_refused(api: Api, shelf: str, wrong: dict[str, Any]) -> None:
    answer = api("owner", "POST", "/grants", json={**GRANT, "collection": shelf, **wrong})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text
    assert answer.json()["call_id"]


def test_a_grant_names_only_documents_of_its_collection(api: Api, shelf: str) -> None:
    other = api.documents("handbook")["travel-policy"]["id"]
    for document in (other, NOWHERE):
        answer = api("owner", "POST", "/grants", json={**GRANT, "collection": shelf, "document": document})
        assert answer.status_code == 404


def test_a_narrowed_token_stays_within_its_bounds(api: Api, shelf: str) -> None:
    narrow = api.mint(by="owner", actions=["search"], collections=[shelf])
    document = api.documents(shelf)["open.txt"]["id"]

    assert api.search(narrow, "almanacs").json()["corpus_versions"] == [f"{shelf}@2"]
    assert api.search(narrow, "car allowance", collection="handbook").json()["code"] == "denied"
    assert [one["slug"] for one in api(narrow, "GET", "/collections").json()["items"]] == [shelf]
    assert api(narrow, "GET", f"/documents/{document}/versions/1/original").status_code == 403
    removal = api(narrow, "DELETE", f"/documents/{document}")
    assert (removal.status_code, removal.json()["code"]) == (403, "insufficient_scope")
    assert api(narrow, "GET", "/calls").status_code == 403
    for path, body in (
        (f"/collections/{shelf}/publish", None),
        ("/grants", {**GRANT, "collection": shelf}),
        ("/collections", {"slug": "never", "title": "never"}),
    ):
        answer = api(narrow, "POST", path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope"), path
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


def test_a_narrowed_token_mints_nothing_and_does_not_see_or_end_the_others(api: Api, shelf: str) -> None:
    bounds: dict[str, Any] = {"actions": ["search", "open"], "collections": [shelf], "expires_at": FUTURE}
    narrow = api.mint(by="owner", **bounds)
    wide = api.made("owner", "/tokens", {"name": "wide"})

    for wanted in ({}, {"actions": ["search"]}, {"actions": None}, {"collections": None}, {"subject": "general"}):
        # A copy, however narrow, would outlive the revocation of the token that made it.
        refused = api(narrow, "POST", "/tokens", json={"name": "copy", **bounds, **wanted})
        assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
    assert api(narrow, "GET", "/tokens").status_code == 403
    assert api(narrow, "DELETE", f"/tokens/{wide['id']}").status_code == 403
    assert api(wide["token"], "GET", "/tokens").status_code == 200


def test_a_token_belongs_to_its_subject(api: Api) -> None:
    made = api.made("general", "/tokens", {"name": "mine"})

    listed = api("general", "GET", "/tokens?limit=200")
    assert made["id"] in {one["id"] for one in listed.json()["items"]}
    assert made["token"] not in listed.text
    assert made["token"].rpartition("_")[2] not in listed.text
    assert api("owner", "POST", "/tokens", json={"name": "theirs", "subject": "general"}).status_code == 403
    for who in ("restricted", "owner", "auditor"):
        assert api(who, "DELETE", f"/tokens/{made['id']}").status_code == 404
    assert api("admin", "DELETE", f"/tokens/{made['id']}").status_code == 204
    assert api(made["token"], "GET", "/tokens").status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a\x00b"},
        {"name": "n" * 201},
        {"expires_at": PAST},
        {"expires_at": "2100-01-01T00:00:00"},
        {"actions": ["fly"]},
        {"actions": "search"},
        {"collections": ["a\x00b"]},
        {"scopes": ["search"]},
    ],
    ids=ascii,
)
def test_a_wrong_token_is_refused(api: Api, wrong: dict[str, Any]) -> None:
    answer = api("general", "POST", "/tokens", json={"name": "test", **wrong})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text


def test_members_that_cannot_be_are_refused(api: Api) -> None:
    bodies: list[dict[str, Any]] = [
        {"principals": ["a\x00b"]},
        {"roles": ["no-such-role"]},
        {"principals": "owner"},
        {"people": []},
    ]
    for wrong in bodies:
        answer = api("admin", "PUT", "/roles/tester/members", json=wrong)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), wrong
