"""What `general` may not see, looked for through every route: nothing of it changes an answer."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from support.api import Api, without_call_id

QUERIES = (
    "salary bands",
    "Tessaline factor",
    "retention payments",
    "budget of the review",
    "pay review",
    "L4 engineers",
)


@pytest.fixture(scope="module")
def secret(api: Api) -> dict[str, Any]:
    """The closed document inside the shared collection, as its owner knows it."""
    return api.documents("handbook")["salary-bands"]


def _pair(api: Api, method: str, path: str, secret: dict[str, Any], root: str = "/api/v1") -> None:
    hidden = api("general", method, path.format(secret["id"]), root=root)
    unknown = api("general", method, path.format(uuid4()), root=root)

    assert (hidden.status_code, unknown.status_code) == (404, 404)
    assert without_call_id(hidden.json()) == without_call_id(unknown.json())
    assert {**hidden.headers, "date": ""} == {**unknown.headers, "date": ""}


@pytest.mark.parametrize("path", ["", "/versions/1", "/versions/1/text", "/versions/1/original", "/versions/2"])
def test_a_hidden_id_is_answered_as_one_that_nobody_has(api: Api, secret: dict[str, Any], path: str) -> None:
    _pair(api, "GET", "/documents/{}" + path, secret)


def test_so_is_its_page_and_its_removal(api: Api, secret: dict[str, Any]) -> None:
    _pair(api, "GET", "/documents/{}/versions/1?start=0&end=10", secret, root="")
    _pair(api, "DELETE", "/documents/{}", secret)


def test_the_job_of_a_hidden_document_does_not_exist(api: Api, secret: dict[str, Any]) -> None:
    with api.server.superuser() as connection:
        row = connection.execute("SELECT id FROM jobs WHERE document_id = %s", [secret["id"]]).fetchone()
    assert row is not None and isinstance(row[0], UUID)
    for id_ in (row[0], uuid4()):
        assert api("general", "GET", f"/jobs/{id_}").status_code == 404
    assert api("restricted", "GET", f"/jobs/{row[0]}").status_code == 200


def test_no_list_counts_or_names_it(api: Api, secret: dict[str, Any]) -> None:
    whole = api("general", "GET", "/collections/handbook/documents?limit=200")
    count = len(whole.json()["items"])
    exact = api("general", "GET", f"/collections/handbook/documents?limit={count}").json()

    assert exact["next_cursor"] is None
    for path in (
        "/collections/handbook/documents?limit=200",
        "/collections",
        "/collections/handbook",
        "/grants",
        "/roles",
    ):
        text = api("general", "GET", path).text
        for word in (
            secret["id"],
            secret["title"],
            secret["file_name"],
            "salary-bands",
            "confidential",
            "Board papers",
        ):
            assert word not in text


@pytest.mark.parametrize("query", QUERIES)
def test_no_search_shows_it(api: Api, secret: dict[str, Any], query: str) -> None:
    for limit in (1, 50):
        answer = api.search("general", query, limit=limit)
        assert secret["id"] not in answer.text
        assert "Tessaline" not in answer.text


def test_its_words_score_as_words_that_are_nowhere(api: Api) -> None:
    hidden, nowhere = (api.search("general", f"{word} pay review") for word in ("Tessaline", "Tesselina"))

    lexical = [[one["document_id"] for one in answer.json()["results"]] for answer in (hidden, nowhere)]
    assert set(lexical[0]) == set(lexical[1])


def test_explanations_are_for_who_manages_or_audits(api: Api, secret: dict[str, Any]) -> None:
    for document in (secret["id"], str(uuid4())):
        for path, more in (("/access/explain", {"principal": "restricted"}), ("/access/who", {})):
            params = {"action": "search", "collection": "handbook", "document": document, **more}
            answer = api("general", "GET", path, params=params)
            assert answer.status_code in (403, 404), (path, answer.text)
            assert "restricted" not in answer.text and secret["title"] not in answer.text


def test_who_may_ingest_around_a_label_learns_nothing_of_what_it_covers(api: Api) -> None:
    """Neither the source id nor the bytes of a hidden document answer otherwise than new ones."""
    shelf, hidden = api.shelf(), b"The hidden ledger of the boiler room."
    api.add(shelf, "ledger.txt", hidden, source_id="ledger", labels="closed")
    for rule in ({}, {"effect": "deny", "label": "closed"}):
        api.made("owner", "/grants", {"action": "ingest", "principal": "porter", "collection": shelf, **rule})
    porter = api.mint("porter")

    for fields, content in (({"source_id": "ledger"}, "news 1"), ({"source_id": "fresh"}, "news 2"), ({}, hidden)):
        receipt = api.upload(shelf, "new.txt" if fields else "copy.txt", content, who=porter, **fields)
        assert (receipt.status_code, receipt.json()["dedup_hit"]) == (202, False)
    assert api.upload(shelf, "c.txt", "x", who=porter, labels="closed").status_code == 403
    assert "closed" not in api(porter, "GET", f"/collections/{shelf}/documents").text


def test_a_method_cannot_be_smuggled(api: Api) -> None:
    document = api.documents("handbook")["travel-policy"]["id"]
    for header in ("x-http-method-override", "x-http-method", "x-method-override"):
        for query, status in (("", 200), ("?_method=DELETE", 400)):
            answer = api("owner", "GET", f"/documents/{document}{query}", headers={header: "DELETE"})
            assert answer.status_code == status
    assert api.documents("handbook")["travel-policy"]["status"] == "published"
