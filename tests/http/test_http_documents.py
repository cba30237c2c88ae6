"""From an upload to a fragment and its original, as an owner and a reader go through it."""

import json
from typing import Any

import pytest
from support.api import NOWHERE, Api, without_call_id

WRONG_BODIES = (
    ("/collections", {"slug": "x", "title": "t", "more": 1}),
    ("/collections", {"slug": 1, "title": "t"}),
    ("/collections", {"slug": "Upper", "title": "t"}),
    ("/collections", {"slug": "a\x00b", "title": "t"}),
    ("/collections", {"slug": "x", "title": "a\x00b"}),
    ("/collections", {"slug": "x", "title": "a\nb"}),
    ("/collections", {"slug": "x", "title": " "}),
    ("/collections", {"slug": "x", "title": "t" * 201}),
    ("/collections/handbook/publish", {"wait": "soon"}),
    ("/collections/handbook/publish", {"wait": True, "force": True}),
)


@pytest.fixture(scope="module")
def shelf(api: Api) -> str:
    return api.shelf()


@pytest.mark.parametrize(
    ("file_name", "text", "query"),
    [
        ("Положение об отпусках.txt", "Отпуск кочегара составляет двадцать восемь дней.", "отпуск кочегара"),
        ("考勤制度.txt", "锅炉工每天打卡两次，迟到者须向班长说明。", "锅炉工打卡"),
        ("the stoker's leave.txt", "The stoker has twenty-eight days of leave.", "stoker leave"),
    ],
)
def test_an_upload_is_found_and_opened_after_its_publish(
    api: Api, shelf: str, file_name: str, text: str, query: str
) -> None:
    receipt = api.upload(shelf, file_name, text)
    job = api.job(receipt)
    assert (job["status"], job["progress"], job["code"]) == ("done", 1, None)
    assert query not in api.search("owner", query, collection=shelf).text

    published = api.made("owner", f"/collections/{shelf}/publish")
    assert (published["documents"], published["dedup_hit"]) == (1, False)

    found = api.search("owner", query, collection=shelf).json()
    assert found["corpus_versions"] == [published["corpus_version"]]
    [fragment] = [one for one in found["results"] if one["document_id"] == receipt.json()["document_id"]]
    version = f"/documents/{fragment['document_id']}/versions/{fragment['document_version']}"
    assert fragment["text"] == text
    assert fragment["source_uri"].startswith(f"{api.server.url}{version}?start=")
    assert api("owner", "GET", f"{version}/text").json()["text"] == text
    original = api("owner", "GET", f"{version}/original")
    assert original.content == text.encode()
    assert original.headers["etag"] == f'"{fragment["content_sha256"]}"'
    card = api("owner", "GET", version).json()
    assert (card["file_name"], card["size"], card["superseded"]) == (file_name, len(text.encode()), False)


def test_the_same_bytes_again_are_no_news(api: Api) -> None:
    shelf = api.shelf()
    first = api.upload(shelf, "a.txt", "Quite the same bytes.")
    api.job(first)
    for name in ("a.txt", "another.txt"):
        again = api.upload(shelf, name, "Quite the same bytes.").json()
        assert again == {**first.json(), "status": "done", "dedup_hit": True}


def test_the_same_source_again_is_another_version_of_the_same_document(api: Api) -> None:
    shelf = api.shelf()
    first = api.add(shelf, "2025.txt", "The kettle is in the cellar.", source_id="kettle")
    second = api.add(shelf, "2026.txt", "The kettle is in the attic.", source_id="kettle")

    assert first == second
    assert api.documents(shelf)["kettle"]["versions"] == 2
    [fragment] = api.search("owner", "where is the kettle", collection=shelf).json()["results"]
    assert (fragment["text"], fragment["corpus_version"]) == ("The kettle is in the attic.", f"{shelf}@2")
    assert api("owner", "GET", f"/documents/{first}/versions/1/text").json()["text"] == "The kettle is in the cellar."
    assert api("owner", "GET", f"/documents/{first}/versions/1").json()["superseded"] is True
    assert api("owner", "GET", f"/documents/{first}/versions/3").status_code == 404


def test_a_publish_with_nothing_new_keeps_the_edition(api: Api) -> None:
    shelf = api.shelf()
    api.add(shelf, "a.txt", "One and only.")

    again = api.made("owner", f"/collections/{shelf}/publish")
    assert again == {"corpus_version": f"{shelf}@1", "documents": 0, "dedup_hit": True}


def test_a_publish_while_jobs_run_is_a_conflict_unless_it_waits(api: Api) -> None:
    shelf = api.shelf()
    api.upload(shelf, "long.txt", "\n\n".join(f"Paragraph {n} of many, about boilers." * 8 for n in range(60)))

    at_once = api("owner", "POST", f"/collections/{shelf}/publish")
    assert (at_once.status_code, at_once.json()["code"]) == (409, "conflict")
    waited = api.made("owner", f"/collections/{shelf}/publish", {"wait": True})
    assert waited == {"corpus_version": f"{shelf}@1", "documents": 1, "dedup_hit": False}


def test_a_removed_document_is_gone_from_the_next_edition_on(api: Api) -> None:
    shelf = api.shelf()
    document = api.add(shelf, "a.txt", "The ladder stands behind the boiler.")
    assert api("owner", "DELETE", f"/documents/{document}").status_code == 204
    assert api.documents(shelf)["a.txt"]["status"] == "removed"

    assert api.made("owner", f"/collections/{shelf}/publish")["corpus_version"] == f"{shelf}@2"
    assert api.search("owner", "where is the ladder", collection=shelf).json()["status"] == "empty"
    assert api("owner", "GET", f"/documents/{document}/versions/1/text").status_code == 404
    assert api("owner", "DELETE", f"/documents/{document}").status_code == 404


def test_the_list_of_collections_holds_what_may_be_searched_or_run(api: Api) -> None:
    def slugs(who: str) -> set[str]:
        return {one["slug"] for one in api(who, "GET", "/collections?limit=200").json()["items"]}

    shelf = api.shelf()
    assert slugs("general") == {"handbook"}
    assert slugs("restricted") == {"handbook", "board"}
    assert slugs("tester") == slugs("auditor") == set()
    assert {"handbook", "board", shelf} <= slugs("owner")


def test_an_outsider_finds_nothing_and_an_insider_is_refused(api: Api) -> None:
    upload: dict[str, Any] = {"files": {"file": ("a.txt", b"x")}}
    for method, path, more in (
        ("GET", "", {}),
        ("GET", "/documents", {}),
        ("POST", "/publish", {}),
        ("POST", "/documents", upload),
    ):
        hidden = api("general", method, f"/collections/board{path}", **more)
        unknown = api("general", method, f"/collections/boars{path}", **more)
        assert hidden.status_code == unknown.status_code == 404
        assert without_call_id(hidden.json()) == without_call_id(unknown.json())
    assert api("general", "POST", "/collections/handbook/publish").status_code == 403
    assert api("general", "POST", "/collections/handbook/documents", **upload).status_code == 403


def test_pages_follow_their_cursors_to_the_end(api: Api) -> None:
    whole = [one["id"] for one in api("general", "GET", "/collections/handbook/documents?limit=200").json()["items"]]
    seen: list[str] = []
    page: dict[str, Any] = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
        page = api("general", "GET", "/collections/handbook/documents", params={"limit": 3, **cursor}).json()
        assert 1 <= len(page["items"]) <= 3
        seen += [one["id"] for one in page["items"]]
    assert seen == whole


@pytest.mark.parametrize(("path", "body"), WRONG_BODIES, ids=ascii)
def test_a_wrong_body_is_refused(api: Api, path: str, body: dict[str, Any]) -> None:
    answer = api("owner", "POST", path, content=json.dumps(body), headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), answer.text


def test_ids_that_do_not_exist_are_not_found(api: Api) -> None:
    for path in (
        f"/documents/{NOWHERE}",
        f"/documents/{NOWHERE}/versions/1",
        f"/documents/{NOWHERE}/versions/1/text",
        f"/documents/{NOWHERE}/versions/1/original",
        f"/jobs/{NOWHERE}",
        f"/calls/{NOWHERE}",
        "/documents/17",
        "/jobs/' OR 1=1",
    ):
        answer = api("owner", "GET", path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
