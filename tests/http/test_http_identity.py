"""Credentials at the door, on both protocols: the status, the challenge, and that only the header counts."""

import socket

import pytest
from support.api import Api

RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = ("accept", "application/json, text/event-stream")
DOORS = {"/api/v1/search": {"query": "car"}, "/mcp": RPC}
door = pytest.mark.parametrize("path", DOORS)


def _status(api: Api, path: str, *headers: tuple[str, str | bytes], query: str = "") -> tuple[int, str | None]:
    raw = [(name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in (ACCEPT, *headers)]
    answer = api.http.post(path + query, json=DOORS[path], headers=raw)
    return answer.status_code, answer.headers.get("www-authenticate")


@door
def test_no_token_is_challenged_without_an_error(api: Api, path: str) -> None:
    metadata = f'resource_metadata="{api.server.url}/.well-known/oauth-protected-resource/mcp"'
    cookie = ("cookie", f"session={api.tokens['owner']}")

    assert _status(api, path) == (401, f"Bearer {metadata}")
    assert _status(api, path, query=f"?access_token={api.tokens['owner']}") == (401, f"Bearer {metadata}")
    assert _status(api, path, cookie) == (401, f"Bearer {metadata}")


@door
@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer nonsense",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {token}, Bearer {token}",
        "Bearer " + "a" * 9000,
        b"Bearer \xff\xfe",
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_bad_token_is_challenged_with_an_error(api: Api, path: str, value: str | bytes) -> None:
    sent = value.replace("{token}", api.tokens["owner"]) if isinstance(value, str) else value
    metadata = f'resource_metadata="{api.server.url}/.well-known/oauth-protected-resource/mcp"'

    assert _status(api, path, ("authorization", sent)) == (401, f'Bearer error="invalid_token", {metadata}')


@door
def test_two_credentials_are_none(api: Api, path: str) -> None:
    both = [("authorization", f"Bearer {api.tokens[name]}") for name in ("general", "owner")]

    assert _status(api, path, *both) == (400, None)


@door
def test_a_token_of_a_megabyte_is_refused(api: Api, path: str) -> None:
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=30) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{api.server.port}\r\nAuthorization: Bearer "
        try:
            connection.sendall(head.encode() + b"a" * 1_000_000 + b"\r\n\r\n")
            answer = connection.recv(100)
        except ConnectionError:  # the server has closed before it had read all of it
            answer = b""
    assert answer == b"" or answer.split()[1] in (b"400", b"401", b"431")
    assert api.http.get("/health/ready").status_code == 200


@door
def test_a_revoked_and_an_expired_token_are_bad_from_the_next_call_on(api: Api, path: str) -> None:
    made = api.made("general", "/tokens", {"name": "test"})
    credential = ("authorization", f"Bearer {made['token']}")
    assert _status(api, path, credential)[0] == 200

    assert api("general", "DELETE", f"/tokens/{made['id']}").status_code == 204
    assert _status(api, path, credential)[0] == 401

    with api.server.superuser() as connection:
        expiring = api.made("general", "/tokens", {"name": "test", "expires_at": "2100-01-01T00:00:00Z"})
        connection.execute("UPDATE tokens SET expires_at = now() WHERE id = %s", [expiring["id"]])
    assert _status(api, path, ("authorization", f"Bearer {expiring['token']}"))[0] == 401


@door
def test_the_scheme_is_read_in_any_case(api: Api, path: str) -> None:
    assert _status(api, path, ("authorization", f"bEARER {api.tokens['general']}"))[0] == 200


@door
def test_a_foreign_host_is_refused(api: Api, path: str) -> None:
    credential = ("authorization", f"Bearer {api.tokens['general']}")
    for host in (
        "evil.example",
        f"evil.example:{api.server.port}",
        f"127.0.0.1.evil.example:{api.server.port}",
        "127.0.0.1",
    ):
        assert _status(api, path, credential, ("host", host)) == (400, None)
    assert _status(api, path, credential, ("host", f"localhost:{api.server.port}"))[0] == 200


def test_a_foreign_origin_is_refused_by_mcp(api: Api) -> None:
    credential = ("authorization", f"Bearer {api.tokens['general']}")
    for origin in ("http://evil.example", "null", "file://"):
        assert _status(api, "/mcp", credential, ("origin", origin)) == (403, None)
    assert _status(api, "/mcp", credential, ("origin", api.server.url))[0] == 200


@door
def test_a_token_without_the_action_is_told_which(api: Api, path: str) -> None:
    narrow = api.mint(by="owner", actions=["ingest"])
    status, challenge = _status(api, path, ("authorization", f"Bearer {narrow}"))

    assert status == 403
    assert challenge is not None and challenge.startswith('Bearer error="insufficient_scope", scope="search", ')


def test_the_body_of_a_stranger_is_not_read(api: Api) -> None:
    """The answer comes while a hundred megabytes are still announced and none of them sent."""
    head = (
        f"POST /api/v1/collections/handbook/documents HTTP/1.1\r\nHost: 127.0.0.1:{api.server.port}\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000000\r\n\r\n--b\r\n"
    )
    with socket.create_connection(("127.0.0.1", api.server.port), timeout=30) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).split()[1] == b"401"
