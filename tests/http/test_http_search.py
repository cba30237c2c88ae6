"""`POST /search`: the envelope, its outcomes, and that only the token says who asks."""

from typing import Any

import pytest
from support.api import Api, without_call_id

ANYTHING = "car allowance"


def test_a_question_with_an_answer(api: Api) -> None:
    answer = api.search("general", "How much do I get per kilometre when I drive my own car?", limit=3)

    body = answer.json()
    assert answer.status_code == 200
    assert (body["status"], body["message"], body["corpus_versions"]) == ("ok", "", ["handbook@2"])
    assert 1 <= len(body["results"]) <= 3
    assert "0.30 EUR for each kilometre" in body["results"][0]["text"]
    scores = [one["score"] for one in body["results"]]
    assert scores == sorted(scores, reverse=True)


def test_nothing_to_be_found_is_empty(api: Api) -> None:
    answer = api.search("general", "zyxwvut qponmlk")

    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["results"]) == ("empty", [])


def test_text_is_the_slice_of_the_document_that_its_offsets_name(api: Api) -> None:
    for query in ("car allowance", "испытательный срок", "考勤"):
        for one in api.search("restricted", query).json()["results"]:
            path = f"/documents/{one['document_id']}/versions/{one['document_version']}/text"
            text = api("restricted", "GET", path).json()["text"]
            assert text[one["char_start"] : one["char_end"]] == one["text"]


def test_a_forbidden_and_an_unknown_collection_are_equal_to_the_byte(api: Api) -> None:
    forbidden, unknown = (api.search("general", ANYTHING, collection=slug) for slug in ("board", "boars"))

    assert forbidden.status_code == unknown.status_code == 403
    assert forbidden.json()["code"] == "denied"
    assert _without_id_and_date(forbidden) == _without_id_and_date(unknown)


def _without_id_and_date(answer: Any) -> tuple[bytes, list[tuple[str, str]]]:
    headers = [(name, value) for name, value in answer.headers.multi_items() if name != "date"]
    return answer.content.replace(answer.json()["call_id"].encode(), b"<id>"), headers


def test_who_may_search_nothing_is_denied_everything(api: Api) -> None:
    assert api.search(api.mint("nobody"), ANYTHING).json()["code"] == "denied"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": None},
        {"query": 7},
        {"query": ["car"]},
        {"query": ""},
        {"query": " \n\t\u3000"},
        {"query": "\u200b\u200d\ufeff"},
        {"query": "\u2060\u00ad"},
        {"query": "\u3164\u2800"},
        {"query": "\u0301"},
        {"query": "a\x00b"},
        {"query": "a" * 2001},
        {"query": "car", "limit": "7"},
        {"query": "car", "limit": True},
        {"query": "car", "limit": 7.0},
        {"query": "car", "limit": None},
        {"query": "car", "limit": 0},
        {"query": "car", "limit": 51},
        {"query": "car", "limit": 10**30},
        {"query": "car", "collection": None},
        {"query": "car", "collection": ["handbook"]},
        {"query": "car", "collection": "Handbook"},
        {"query": "car", "collection": "handbook\n"},
        {"query": "car", "collection": "' OR 1=1 --"},
        {"query": "car", "user": "owner"},
        {"query": "car", "": 1},
    ],
    ids=lambda body: ascii(body)[:40],
)
def test_a_wrong_argument_is_refused_and_neither_coerced_nor_dropped(api: Api, body: dict[str, Any]) -> None:
    answer = api("general", "POST", "/search", json=body)

    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "invalid_request"
    assert answer.json()["field"] and answer.json()["allowed"]
    assert answer.json()["call_id"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"car"',
        b'{"query": "a\\ud800"}',
        b'{"query": "\xff"}',
        b'{"query": "car", "limit": NaN}',
        b'{"query": "car", "limit": 1e999}',
        b'{"query":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=lambda body: ascii(body)[:30],
)
def test_a_body_that_is_no_object_is_refused_and_only_for_who_is_known(api: Api, body: bytes) -> None:
    json = {"content-type": "application/json"}
    answer = api("general", "POST", "/search", content=body, headers=json)

    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] == "invalid_request"
    assert api("auditor", "GET", f"/calls/{answer.json()['call_id']}").json()["outcome"] == "invalid_request"
    assert api(None, "POST", "/search", content=body, headers=json).status_code == 401


def test_another_content_type_is_refused(api: Api) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/msgpack"):
        answer = api("general", "POST", "/search", content=b'{"query": "car"}', headers={"content-type": content_type})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_type")


def test_2000_characters_and_every_limit_that_is_allowed_are_taken(api: Api) -> None:
    assert api.search("general", "a" * 2000).status_code == 200
    assert api.search("general", "\U0001f600" * 2000).status_code == 200
    assert len(api.search("general", "the", limit=1).json()["results"]) <= 1
    assert api.search("general", ANYTHING, limit=50).status_code == 200


def test_headers_and_questions_that_claim_to_be_somebody_change_nothing(api: Api) -> None:
    claims = dict.fromkeys(("x-user", "x-forwarded-user", "remote-user", "x-role", "x-http-method-override"), "owner")
    plain = api.search("general", ANYTHING)
    claimed = api("general", "POST", "/search", json={"query": ANYTHING}, headers=claims)

    assert without_call_id(plain.json()) == without_call_id(claimed.json())
    about = "I am restricted, a member of the board. What does project Brindlefen cost?"
    assert all(one["collection"] == "handbook" for one in api.search("general", about).json()["results"])
