"""Errors as RFC 9457 problem documents: the same members everywhere, and nothing of what is inside."""

import base64
from typing import Any

import pytest
from support.api import NOWHERE, Api

NO_CALL = ("No such path.", "This path does not take that method.")
INNARDS = ("SELECT", "psycopg", "sqlalchemy", "litestar", "msgspec", "Traceback", "/app/", "Error", "site-packages")


def _cursor(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode()


REFUSED: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "/nowhere", {}, 404, "not_found"),
    ("PATCH", "/collections", {}, 405, "invalid_request"),
    ("GET", f"/documents/{NOWHERE}", {}, 404, "not_found"),
    ("GET", "/documents/17", {}, 404, "not_found"),
    ("GET", f"/documents/{NOWHERE}/versions/x", {}, 404, "not_found"),
    ("GET", f"/documents/{NOWHERE}/versions/0", {}, 400, "invalid_request"),
    ("GET", f"/documents/{NOWHERE}/versions/{10**12}", {}, 400, "invalid_request"),
    ("GET", "/collections/..%2f..%2fetc%2fpasswd", {}, 404, "not_found"),
    ("GET", "/collections/a%00b", {}, 400, "invalid_request"),
    ("GET", "/collections/a%00b/documents", {}, 400, "invalid_request"),
    ("GET", "/collections/%ff%fe", {}, 404, "not_found"),
    ("GET", "/roles/a%00b/members", {}, 400, "invalid_request"),
    ("DELETE", "/tokens/a%00b", {}, 400, "invalid_request"),
    ("DELETE", "/tokens/' OR 1=1 --", {}, 404, "not_found"),
    ("GET", "/calls?outcome=%00", {}, 400, "invalid_request"),
    ("GET", "/collections?limit=x", {}, 400, "invalid_request"),
    ("GET", "/collections?limit=201", {}, 400, "invalid_request"),
    ("GET", "/collections?limit=-1", {}, 400, "invalid_request"),
    ("GET", f"/collections?cursor={_cursor(bytes(1))}", {}, 400, "invalid_request"),
    ("GET", f"/collections?cursor={_cursor(bytes([255]))}", {}, 400, "invalid_request"),
    ("GET", f"/collections?cursor={_cursor(b'a' * 300)}", {}, 400, "invalid_request"),
    ("GET", f"/roles?cursor={_cursor(bytes(1))}", {}, 400, "invalid_request"),
    ("GET", f"/tokens?cursor={_cursor(bytes(1))}", {}, 400, "invalid_request"),
    ("GET", f"/grants?cursor={_cursor(b'17')}", {}, 400, "invalid_request"),
    ("GET", f"/calls?cursor={_cursor(b'1; DROP TABLE calls')}", {}, 400, "invalid_request"),
    ("GET", "/calls?cursor=***", {}, 400, "invalid_request"),
    ("POST", "/collections", {"json": {"slug": "handbook", "title": "taken"}}, 409, "conflict"),
    ("POST", "/search", {"json": {"query": "x", "collection": "boars"}}, 403, "denied"),
    ("GET", "/access/explain?action=search", {}, 400, "invalid_request"),
    ("GET", "/access/who?action=fly", {}, 400, "invalid_request"),
]


@pytest.mark.parametrize(("method", "path", "more", "status", "code"), REFUSED, ids=lambda part: ascii(part)[:50])
def test_a_refusal_is_a_problem_document(
    api: Api, method: str, path: str, more: dict[str, Any], status: int, code: str
) -> None:
    answer = api("owner", method, path, **more)

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert (problem["type"], problem["status"]) == ("about:blank", status)
    assert problem["title"] and problem["detail"]
    assert problem.get("call_id") or problem["detail"] in NO_CALL
    assert not any(word in answer.text for word in INNARDS)


def test_a_refusal_does_not_repeat_what_was_sent(api: Api) -> None:
    for answer in (
        api("owner", "GET", "/collections?limit=zyxwv"),
        api("owner", "POST", "/collections", json={"slug": "zyxwv!", "title": 7}),
        api("owner", "GET", "/zyxwv"),
        api("owner", "GET", "/calls?cursor=zyxwv"),
    ):
        assert "zyxwv" not in answer.text


def test_answers_are_kept_by_nobody(api: Api) -> None:
    for answer in (
        api.search("general", "car allowance"),
        api("general", "GET", "/collections"),
        api("general", "GET", "/tokens"),
        api("general", "GET", "/nowhere"),
        api(None, "GET", "/collections"),
    ):
        assert "no-store" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
