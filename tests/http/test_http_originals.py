"""Hostile originals stay inert, and the page that a fragment leads to marks the cited place."""

from dataclasses import dataclass

import pytest
from support.api import NOWHERE, Api

HTML = (
    b"<html><body><h1>Boiler</h1><p>Before &lt;script&gt;alert(1)&lt;/script&gt; after.</p>"
    b"<script>document.write('owned')</script></body></html>"
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@dataclass(frozen=True, slots=True)
class Page:
    """A published document, and where its first version is."""

    document: str

    @property
    def version(self) -> str:
        """The path of its facts, below the root of the API, and of its page, below that of the server."""
        return f"/documents/{self.document}/versions/1"


@pytest.fixture(scope="module")
def page(api: Api) -> Page:
    shelf = api.shelf()
    return Page(api.add(shelf, 'boiler"><b>.html', HTML, title="<script>alert(2)</script>"))


def test_an_original_is_handed_out_as_it_came_and_cannot_run(api: Api, page: Page) -> None:
    answer = api("owner", "GET", f"{page.version}/original")

    assert answer.content == HTML
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "sandbox" in policy and "default-src 'none'" in policy and "allow-scripts" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert not set(answer.headers["content-disposition"]) & set('<>"\r\n')
    assert "no-store" in answer.headers["cache-control"]


def test_the_cited_place_is_marked_and_everything_is_escaped(api: Api, page: Page) -> None:
    text = api("owner", "GET", f"{page.version}/text").json()["text"]
    start = text.index("<script>")
    end = start + len("<script>alert(1)</script>")

    answer = api("owner", "GET", f"{page.version}?start={start}&end={end}", root="")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<mark id="cited">&lt;script&gt;alert(1)&lt;/script&gt;</mark> after' in answer.text
    assert "<script" not in answer.text
    assert "<h1>&lt;script&gt;alert(2)" in answer.text
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_source_uri_leads_to_its_fragment(api: Api) -> None:
    [fragment, *_] = api.search("general", "lost hardware key").json()["results"]
    path = fragment["source_uri"].removeprefix(api.server.url)

    marked = api("general", "GET", path, root="").text.split('<mark id="cited">')[1].split("</mark>")[0]
    assert marked.replace("&#x27;", "'").replace("&quot;", '"').replace("&amp;", "&") == fragment["text"]


@pytest.mark.parametrize("query", ["", "?start=9&end=3", "?start=5", f"?start={10**9}&end={10**9}", f"?end={10**30}"])
def test_any_bounds_give_the_whole_text(api: Api, page: Page, query: str) -> None:
    answer = api("owner", "GET", f"{page.version}{query}", root="")

    assert answer.status_code == 200
    assert "after." in answer.text.replace('<mark id="cited">', "").replace("</mark>", "")


@pytest.mark.parametrize("query", ["?start=-1", "?start=x", "?end=1.5", "?start=1&start=2x"])
def test_bounds_that_are_no_numbers_are_refused(api: Api, page: Page, query: str) -> None:
    assert api("owner", "GET", f"{page.version}{query}", root="").status_code == 400


def test_svg_runs_nowhere(api: Api) -> None:
    job = api.job(api.upload(api.shelf(), "drawing.svg", SVG))

    assert job["status"] == "failed" or job["code"] is None


def test_who_may_search_and_not_open_reads_the_text_and_not_the_original(api: Api) -> None:
    shelf = api.shelf()
    document = api.add(shelf, "a.txt", "Reading room only.")
    api.made("owner", "/grants", {"principal": "reader", "action": "search", "collection": shelf})
    reader = api.mint("reader")

    assert api(reader, "GET", f"/documents/{document}/versions/1/text").json()["text"] == "Reading room only."
    assert api(reader, "GET", f"/documents/{document}/versions/1/original").status_code == 404


@pytest.mark.parametrize("who", ["general", "auditor", "admin", "tester"])
def test_a_closed_document_does_not_exist_for_others(api: Api, who: str, page: Page) -> None:
    for path in ("", "/text", "/original"):
        assert api(who, "GET", f"{page.version}{path}").status_code == 404
    assert api(who, "GET", page.version, root="").status_code == 404


@pytest.mark.parametrize(
    ("asked", "first", "end"),
    [
        ("0-0", 0, 1),
        ("3-9", 3, 10),
        ("10-", 10, None),
        ("-5", -5, None),
        ("0-99999999", 0, None),
        ("-99999999", 0, None),
    ],
)
def test_a_part_of_an_original_is_handed_out(api: Api, page: Page, asked: str, first: int, end: int | None) -> None:
    answer = api("owner", "GET", f"{page.version}/original", headers={"range": f"bytes={asked}"})
    start, stop = len(HTML[:first]) if first >= 0 else len(HTML) + first, len(HTML[:end])

    assert (answer.status_code, answer.content) == (206, HTML[start:stop])
    assert answer.headers["content-range"] == f"bytes {start}-{stop - 1}/{len(HTML)}"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("asked", ["bytes=", "bytes=-", "bytes=9-3", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b", "1-2"])
def test_what_is_no_single_range_gets_the_whole(api: Api, page: Page, asked: str) -> None:
    answer = api("owner", "GET", f"{page.version}/original", headers={"range": asked})

    assert (answer.status_code, answer.content) == (200, HTML)
    assert answer.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize("asked", [f"{len(HTML)}-", "99999999-", "-0"])
def test_a_part_behind_the_end_is_refused_to_who_may_open_it_alone(api: Api, page: Page, asked: str) -> None:
    headers = {"range": f"bytes={asked}"}
    answer = api("owner", "GET", f"{page.version}/original", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (416, "invalid_request")
    assert answer.headers["content-range"] == f"bytes */{len(HTML)}"
    assert api("general", "GET", f"{page.version}/original", headers=headers).status_code == 404


def test_a_part_of_another_original_is_the_whole_of_this_one(api: Api, page: Page) -> None:
    etag = api("owner", "GET", f"{page.version}/original").headers["etag"]

    for given, status in ((etag, 206), ('"0000"', 200), ("Mon, 30 Nov 2026 12:00:00 GMT", 200)):
        headers = {"range": "bytes=2-4", "if-range": given}
        assert api("owner", "GET", f"{page.version}/original", headers=headers).status_code == status


def test_a_token_for_other_actions_is_told_so_whatever_there_is(api: Api, page: Page) -> None:
    searching, opening = api.mint(by="owner", actions=["search"]), api.mint(by="owner", actions=["open"])

    for document in (page.document, NOWHERE):
        for token, part, wanted in (
            (searching, "/original", "open"),
            (opening, "/text", "search"),
            (opening, "", "search"),
        ):
            answer = api(token, "GET", f"/documents/{document}/versions/1{part}")
            assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
            assert f'scope="{wanted}"' in answer.headers["www-authenticate"]
    assert api(searching, "GET", f"{page.version}/text").status_code == 200
    assert api(opening, "GET", f"{page.version}/original").status_code == 200
