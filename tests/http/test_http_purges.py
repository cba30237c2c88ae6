"""Purges over REST: one person asks, another confirms; nobody else can, and the hidden stays hidden."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.api import NOWHERE, Api, without_call_id
from support.waiting import until


@pytest.fixture(scope="module", autouse=True)
def settled(api: Api) -> Iterator[None]:
    """Leave nothing for the server to erase later, under other tests."""
    yield
    with api.server.superuser() as behind:
        waiting = "SELECT count(*) FROM purges WHERE status = 'purged' AND erased_at IS NULL"
        until(lambda: behind.execute(waiting).fetchone() == (0,), "the erasing of every purge")


@pytest.fixture
def document(api: Api, shelf: str) -> str:
    """A document whose first version is superseded."""
    api.add(shelf, "kettle", "The kettle is in the cellar.")
    return api.add(shelf, "kettle", "The kettle is in the attic.")


@pytest.fixture
def shelf(api: Api) -> str:
    """A collection of the demo's owner, whose purges the demo's tester confirms."""
    shelf = api.shelf()
    custodians = {"owner": "owner", "purge_confirmer": "tester"}
    assert api("owner", "PUT", f"/collections/{shelf}/custodians", json=custodians).status_code == 200
    return shelf


def _body(document: str, version: int = 1, reason: str = "a court order") -> dict[str, Any]:
    return {"document_id": document, "version": version, "reason": reason}


def test_a_purge_from_its_request_to_the_empty_disk(api: Api, shelf: str, document: str) -> None:
    purges = f"/collections/{shelf}/purges"
    asked = api("owner", "POST", purges, json=_body(document))
    assert asked.status_code == 201
    card = asked.json()
    assert (card["status"], card["document_id"], card["version"], card["requested_by"], card["reason"]) == (
        ("pending", document, 1, "owner", "a court order")
    )
    version = f"/documents/{document}/versions/1"
    assert api("owner", "GET", f"{version}/text").json()["text"] == "The kettle is in the cellar."

    done = api("tester", "POST", f"{purges}/{card['id']}/confirm")
    assert (done.status_code, done.json()["status"], done.json()["decided_by"]) == (200, "purged", "tester")
    for path in (version, f"{version}/text", f"{version}/original"):
        assert api("owner", "GET", path).status_code == 404
    [fragment] = api.search("owner", "where is the kettle", collection=shelf).json()["results"]
    assert fragment["document_version"] == 2
    logged = [one for one in api("owner", "GET", "/calls?limit=50").json()["items"] if one["collection"] == shelf]
    confirmed = [one for one in logged if one["operation"].endswith("/confirm")]
    assert [(one["principal"], one["outcome"], one["document_ids"]) for one in confirmed] == [
        ("tester", "ok", [document])
    ]
    [listed] = api("tester", "GET", purges).json()["items"]
    assert {**listed, "erased_at": None} == {**done.json(), "erased_at": None}
    until(lambda: bool(api("tester", "GET", purges).json()["items"][0]["erased_at"]), "the erasing of the purge")


def test_neither_who_asked_nor_anybody_else_confirms(api: Api, shelf: str, document: str) -> None:
    purges = f"/collections/{shelf}/purges"
    card = api.made("owner", purges, _body(document))
    confirm = f"{purges}/{card['id']}/confirm"
    other_token = api.mint("owner")
    for who, status in (("owner", 403), (other_token, 403), ("admin", 403), ("auditor", 403), ("general", 404)):
        assert api(who, "POST", confirm).status_code == status, who
    narrowed = api.mint("tester", actions=["search"])
    assert api(narrowed, "POST", confirm).json()["code"] == "not_found"
    assert api("owner", "GET", f"/documents/{document}/versions/1/text").status_code == 200
    assert api("tester", "POST", confirm).status_code == 200
    assert api("tester", "POST", confirm).json()["code"] == "conflict"


def test_who_confirms_does_not_ask(api: Api, shelf: str, document: str) -> None:
    answer = api("tester", "POST", f"/collections/{shelf}/purges", json=_body(document))
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_purge_can_be_withdrawn(api: Api, shelf: str, document: str) -> None:
    purges = f"/collections/{shelf}/purges"
    card = api.made("owner", purges, _body(document))
    assert api("owner", "POST", purges, json=_body(document)).status_code == 409
    dropped = api("owner", "DELETE", f"{purges}/{card['id']}")
    assert (dropped.status_code, dropped.json()["status"]) == (200, "withdrawn")
    for method, path in (("POST", f"{purges}/{card['id']}/confirm"), ("DELETE", f"{purges}/{card['id']}")):
        assert api("tester", method, path).status_code == 409
    api.made("owner", purges, _body(document))


def test_what_is_live_or_unknown_is_not_purged(api: Api, shelf: str, document: str) -> None:
    purges = f"/collections/{shelf}/purges"
    assert api("owner", "POST", purges, json=_body(document, 2)).json()["code"] == "conflict"
    elsewhere = api.add(api.shelf(), "pan", "A pan.")
    answers = [api("owner", "POST", purges, json=_body(one)) for one in (NOWHERE, elsewhere)]
    answers.append(api("owner", "POST", purges, json=_body(document, 9)))
    assert {answer.status_code for answer in answers} == {404}
    assert len({str(without_call_id(answer.json())) for answer in answers}) == 1
    assert api("tester", "POST", f"{purges}/{NOWHERE}/confirm").status_code == 404


@pytest.mark.parametrize(
    "change",
    [{"version": 0}, {"version": "one"}, {"reason": ""}, {"reason": "a\nb"}, {"more": 1}, {"document_id": "x"}],
)
def test_a_wrong_request_is_refused(api: Api, shelf: str, change: dict[str, Any]) -> None:
    answer = api("owner", "POST", f"/collections/{shelf}/purges", json={**_body(NOWHERE), **change})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


def test_a_hidden_documents_purge_is_hidden(api: Api, shelf: str, document: str) -> None:
    purges = f"/collections/{shelf}/purges"
    api.made("owner", "/grants", {"collection": shelf, "principal": "restricted", "action": "purge"})
    rule = {"collection": shelf, "principal": "restricted", "action": "purge", "document": document, "effect": "deny"}
    card = api.made("owner", purges, _body(document))
    assert [one["id"] for one in api("restricted", "GET", purges).json()["items"]] == [card["id"]]
    api.made("owner", "/grants", rule)
    assert api("restricted", "GET", purges).json()["items"] == []
    hidden = api("restricted", "DELETE", f"{purges}/{card['id']}")
    unknown = api("restricted", "DELETE", f"{purges}/{NOWHERE}")
    assert hidden.status_code == unknown.status_code == 404
    assert without_call_id(hidden.json()) == without_call_id(unknown.json())
    assert api("restricted", "POST", purges, json=_body(document)).status_code == 404


def test_what_was_purged_does_not_come_back(api: Api, shelf: str, document: str) -> None:
    card = api.made("owner", f"/collections/{shelf}/purges", _body(document))
    assert api("tester", "POST", f"/collections/{shelf}/purges/{card['id']}/confirm").status_code == 200
    answer = api("owner", "POST", f"/collections/{shelf}/rollback", json={"corpus_version": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    diff = api("owner", "GET", f"/collections/{shelf}/versions/2/diff").json()["items"]
    assert [(one["title"], one["change"]) for one in diff] == [("kettle", "changed")]
