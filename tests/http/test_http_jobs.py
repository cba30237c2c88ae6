"""Jobs over REST: a collection's list by pages and by status; ended and tried again by who may."""

from typing import Any

import pytest
from support.api import Api

BROKEN = b"%PDF-1.7\nnot really"


@pytest.fixture(scope="module")
def shelf(api: Api) -> str:
    """A collection with two files that were read and two that could not be."""
    shelf = api.shelf()
    for number in range(2):
        assert api.job(api.upload(shelf, f"note-{number}.txt", f"Of the tides, {number}."))["status"] == "done"
        assert api.job(api.upload(shelf, f"broken-{number}.pdf", BROKEN + bytes([48 + number])))["status"] == "failed"
    return shelf


def _listed(api: Api, shelf: str, query: str = "") -> dict[str, Any]:
    answer = api("owner", "GET", f"/collections/{shelf}/jobs?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_collections_jobs_are_listed_newest_first(api: Api, shelf: str) -> None:
    found = _listed(api, shelf)

    assert [one["file_name"] for one in found["items"]] == ["broken-1.pdf", "note-1.txt", "broken-0.pdf", "note-0.txt"]
    assert found["next_cursor"] is None
    job = found["items"][0]
    assert (job["status"], job["code"], job["version"], job["attempts"]) == ("failed", "unreadable", 1, 1)
    shown = api("owner", "GET", f"/jobs/{job['id']}").json()
    assert shown.items() <= job.items()


def test_by_pages_they_are_the_same(api: Api, shelf: str) -> None:
    ids, cursor = [], ""
    while cursor is not None:
        found = _listed(api, shelf, f"limit=1&cursor={cursor}" if cursor else "limit=1")
        ids += [one["id"] for one in found["items"]]
        cursor = found["next_cursor"]

    assert ids == [one["id"] for one in _listed(api, shelf)["items"]]


def test_by_status_they_are_fewer(api: Api, shelf: str) -> None:
    names = {status: _names(_listed(api, shelf, f"status={status}")) for status in ("done", "failed", "running")}

    assert names == {
        "done": {"note-0.txt", "note-1.txt"},
        "failed": {"broken-0.pdf", "broken-1.pdf"},
        "running": set(),
    }


def _names(page: dict[str, Any]) -> set[str]:
    return {one["file_name"] for one in page["items"]}


@pytest.mark.parametrize(
    "query", ["status=broken", "status=", "limit=0", "limit=201", "cursor=x", "cursor=MjAyNi0xMi0wMQ=="]
)
def test_a_wrong_question_is_refused(api: Api, shelf: str, query: str) -> None:
    answer = api("owner", "GET", f"/collections/{shelf}/jobs?{query}")

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text


def test_what_failed_is_tried_again_and_what_has_ended_is_not_cancelled(api: Api, shelf: str) -> None:
    receipt = api.upload(shelf, "again.pdf", BROKEN)
    job = api.job(receipt)

    answer = api("owner", "POST", f"/jobs/{job['id']}/retry")

    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["code"], answer.json()["progress"]) == ("queued", None, 0.0)
    assert api.job(receipt)["code"] == "unreadable"
    refused = api("owner", "POST", f"/jobs/{job['id']}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


def test_what_was_read_is_not_tried_again(api: Api, shelf: str) -> None:
    (done, *_) = _listed(api, shelf, "status=done")["items"]

    answer = api("owner", "POST", f"/jobs/{done['id']}/retry")

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
