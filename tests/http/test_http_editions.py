"""Editions over REST: listed, compared, gone back to; and who is told what of them."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.api import Api, without_call_id

HIDDEN = "closed"


@pytest.fixture(scope="module")
def shelf(api: Api) -> Iterator[str]:
    """@1: kettle 1, secret 1. @2: kettle 2. @3: broom added, secret 2. `general` sees all but the secret."""
    shelf = api.shelf()
    rule = {"collection": shelf, "principal": "general", "action": "search"}
    rules = [
        api.made("owner", "/grants", rule),
        api.made("owner", "/grants", {**rule, "label": HIDDEN, "effect": "deny"}),
    ]
    api.job(api.upload(shelf, "secret", "The secret kettle.", labels=HIDDEN))
    api.add(shelf, "kettle", "The kettle is in the cellar.")
    api.add(shelf, "kettle", "The kettle is in the attic.")
    api.job(api.upload(shelf, "secret", "The secret kettle, again."))
    api.add(shelf, "broom", "The broom hangs beside the kettle.")
    yield shelf
    for one in rules:
        assert api("owner", "DELETE", f"/grants/{one['id']}").status_code == 200


def _items(api: Api, who: str, path: str) -> list[dict[str, Any]]:
    answer = api(who, "GET", path)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def _diff(api: Api, who: str, shelf: str, query: str) -> set[tuple[Any, ...]]:
    items = _items(api, who, f"/collections/{shelf}/versions/{query}")
    return {(one["title"], one["change"], one["from_version"], one["to_version"]) for one in items}


def test_editions_are_listed_newest_first_and_count_what_is_seen(api: Api, shelf: str) -> None:
    path = f"/collections/{shelf}/versions"
    owned, seen = _items(api, "owner", path), _items(api, "general", path)
    assert [one["corpus_version"] for one in owned] == [f"{shelf}@{n}" for n in (3, 2, 1)]
    assert [one["documents"] for one in owned] == [2, 1, 2]
    assert [one["documents"] for one in seen] == [1, 1, 1]
    assert {(one["published_by"], one["rolled_back_to"]) for one in owned} == {("owner", None)}
    first = api("owner", "GET", f"{path}?limit=2").json()
    rest = api("owner", "GET", path, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [*first["items"], *rest["items"]] == owned and rest["next_cursor"] is None


def test_a_diff_holds_what_the_caller_may_see(api: Api, shelf: str) -> None:
    kettle, broom = ("kettle", "changed", 1, 2), ("broom", "added", None, 1)
    assert _diff(api, "general", shelf, "3/diff?against=1") == {kettle, broom}
    assert _diff(api, "owner", shelf, "3/diff?against=1") == {kettle, broom, ("secret", "changed", 1, 2)}
    assert _diff(api, "general", shelf, "3/diff") == {broom}
    assert _diff(api, "general", shelf, "1/diff") == {("kettle", "added", None, 1)}
    assert _diff(api, "general", shelf, "1/diff?against=3") == {
        ("kettle", "changed", 2, 1),
        ("broom", "removed", 1, None),
    }


def test_a_diff_pages_by_cursor(api: Api, shelf: str) -> None:
    path = f"/collections/{shelf}/versions/3/diff?against=0"
    first = api("owner", "GET", f"{path}&limit=2").json()
    rest = api("owner", "GET", path, params={"against": 0, "limit": 2, "cursor": first["next_cursor"]}).json()
    assert [len(first["items"]), len(rest["items"])] == [2, 1]
    assert [*first["items"], *rest["items"]] == _items(api, "owner", path)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("versions/4/diff", 404),
        ("versions/3/diff?against=4", 404),
        ("versions/0/diff", 400),
        ("versions/3/diff?against=-1", 400),
        ("versions/3/diff?against=x", 400),
        ("versions/x/diff", 404),
        ("versions?cursor=eA==", 400),
    ],
)
def test_editions_that_never_were_are_not_found(api: Api, shelf: str, path: str, status: int) -> None:
    assert api("general", "GET", f"/collections/{shelf}/{path}").status_code == status


def test_to_an_outsider_there_are_no_editions(api: Api, shelf: str) -> None:
    for method, path, body in (
        ("GET", "versions", None),
        ("GET", "versions/1/diff", None),
        ("POST", "rollback", {"corpus_version": 1}),
    ):
        hidden, unknown = (
            api("restricted", method, f"/collections/{slug}/{path}", json=body) for slug in (shelf, "nowhere")
        )
        assert hidden.status_code == unknown.status_code == 404
        assert without_call_id(hidden.json()) == without_call_id(unknown.json())
    assert api("general", "POST", f"/collections/{shelf}/rollback", json={"corpus_version": 1}).status_code == 403


@pytest.mark.parametrize("version", ["1", 1, "{shelf}@1"])
def test_a_rollback_is_found_at_once_and_listed(api: Api, version: str | int) -> None:
    shelf = api.shelf()
    document = api.add(shelf, "kettle", "The kettle is in the cellar.")
    api.add(shelf, "kettle", "The kettle is in the attic.")
    named = version.format(shelf=shelf) if isinstance(version, str) else version

    done = api.made("owner", f"/collections/{shelf}/rollback", {"corpus_version": named})
    assert done == {"corpus_version": f"{shelf}@3", "documents": 1, "dedup_hit": False}
    [fragment] = api.search("owner", "where is the kettle", collection=shelf).json()["results"]
    assert (fragment["text"], fragment["document_version"]) == ("The kettle is in the cellar.", 1)
    assert (fragment["corpus_version"], fragment["superseded"]) == (f"{shelf}@3", False)
    assert _items(api, "owner", f"/collections/{shelf}/versions")[0]["rolled_back_to"] == f"{shelf}@1"
    card = api("owner", "GET", f"/documents/{document}/versions/2").json()
    assert card["superseded"] is True
    assert api("owner", "GET", f"/documents/{document}/versions/2/original").content == b"The kettle is in the attic."
    [logged] = [
        one
        for one in _items(api, "owner", "/calls?limit=50")
        if one["collection"] == shelf and one["operation"].endswith("/rollback")
    ]
    assert logged["outcome"] == "ok"


@pytest.mark.parametrize(
    "body",
    [
        {},
        *({"corpus_version": wrong} for wrong in ("handbook@1", "x", "1@1", "", 0, -1, 2**31, True, 1.5, None)),
        {"corpus_version": 1, "more": 1},
    ],
    ids=str,
)
def test_a_wrong_rollback_is_refused(api: Api, shelf: str, body: dict[str, Any]) -> None:
    answer = api("owner", "POST", f"/collections/{shelf}/rollback", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


def test_a_document_that_came_later_is_withdrawn_and_listed_as_removed(api: Api) -> None:
    shelf = api.shelf()
    api.add(shelf, "kettle", "The kettle is in the cellar.")
    broom = api.add(shelf, "broom", "The broom hangs beside the kettle.")
    api.made("owner", f"/collections/{shelf}/rollback", {"corpus_version": 1})

    assert api.documents(shelf)["broom"]["status"] == "removed"
    assert api("owner", "GET", f"/documents/{broom}/versions/1/text").status_code == 404
    api.made("owner", f"/collections/{shelf}/rollback", {"corpus_version": 2})
    assert api.documents(shelf)["broom"]["status"] == "published"
    assert api("owner", "GET", f"/documents/{broom}/versions/1/text").status_code == 200
