"""Every route and every tool, as every kind of caller: the answer, its row in the log, and that nothing changed."""

from collections.abc import Iterator
from typing import Any

import pytest
from litestar import Litestar
from security.matrix_rows import CALLERS, ELSEWHERE, OPTIONS, ROWS, TOOLS, Row
from security.matrix_stage import Stage, Watch, spoken
from support.api import Api

from app.entrypoints.http.application import create
from app.entrypoints.mcp import tools
from app.entrypoints.services import Services

EVERY = (*ROWS, *ELSEWHERE, *OPTIONS)
CODES = {"401": "unauthenticated", "403": "denied", "404": "not_found", "409": "conflict"}
RPC = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.fixture(scope="module")
def stage(api: Api) -> Iterator[Stage]:
    stage = Stage(api)
    yield stage
    stage.leave()


@pytest.fixture(scope="module")
def watch(api: Api) -> Iterator[Watch]:
    with api.server.superuser() as behind:
        yield Watch(behind)


@pytest.fixture
def application(services: Services) -> Litestar:
    async def mcp(*_: object) -> None:
        raise AssertionError("never called")

    return create(services, mcp, "http://127.0.0.1/metadata", [])


def _routes(application: Litestar) -> set[str]:
    """Every method and path template; `/mcp` is an application of its own that is asked about its methods."""
    return {
        f"{method} {route.path}" for route in application.routes for method in getattr(route, "methods", ()) or ("*",)
    }


def test_every_route_has_a_row_and_every_row_a_route(application: Litestar) -> None:
    mcp = {row.route for row in ELSEWHERE if row.route.endswith(" /mcp")}
    rows = {row.route for row in EVERY} - mcp | {"* /mcp"}

    assert mcp == {"POST /mcp", "GET /mcp", "DELETE /mcp"}
    assert rows == _routes(application)


def test_every_tool_has_a_row_and_every_row_a_tool(stage: Stage) -> None:
    assert {name for name, _, _ in TOOLS} == {tool.name for tool in tools.listed()}
    for caller in CALLERS[2:]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = stage.api(stage.credential(caller), "POST", "/mcp", root="", json=body, headers=RPC)
        assert [tool["name"] for tool in spoken(answer)["tools"]] == [tool.name for tool in tools.listed()]


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.name)
def test_row(row: Row, stage: Stage, watch: Watch) -> None:
    found = [_cell(row, caller, expected, stage, watch) for caller, expected in zip(CALLERS, row.expected, strict=True)]

    assert dict(zip(CALLERS, found, strict=True)) == dict(zip(CALLERS, row.expected, strict=True))


def _cell(row: Row, caller: str, expected: str, stage: Stage, watch: Watch) -> str:
    """Carry one call out; its status. What is refused must be in the log under its code, and change nothing."""
    how = {"json": stage.filled(row.json), "files": stage.filled(row.files)}
    path = stage.filled(f"{row.path}?{row.query}" if row.query else row.path)
    sent = {name: value for name, value in how.items() if value is not None}
    headers = RPC if row.route == "POST /mcp" else {}
    before = watch.state()
    answer = stage.api(stage.credential(caller), row.method, path, root="", headers=headers, **sent)
    if answer.status_code == 202:  # its job would change things under the next cell
        assert stage.api.job(answer)["status"] == "done"
    if answer.status_code >= 400:
        assert watch.state() == before, f"{row.name} as {caller}: refused, and changed something"
        _refused(row, caller, answer, watch)
    else:
        stage.used(caller, answer)
    return str(answer.status_code)


def _refused(row: Row, caller: str, answer: Any, watch: Watch) -> None:
    """The body names the code of the status alone; a call that was somebody's is in the log."""
    status = str(answer.status_code)
    if row.path.startswith("/schema/"):  # the framework's own page, which says no more than that
        return
    if status == "401":
        assert answer.headers["www-authenticate"].startswith("Bearer ")
        assert answer.headers["www-authenticate"].count("invalid_token") == (caller == "forged")
    if row.path == "/mcp":
        assert answer.json()["error"] == CODES.get(status, "invalid_request")
        return
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == CODES[status], answer.text
    if status == "401":
        assert "call_id" not in answer.json()
        return
    assert watch.call(answer.json()["call_id"]) == (caller, "http", row.operation, CODES[status])


@pytest.mark.parametrize(("name", "arguments", "expected"), TOOLS, ids=lambda given: str(given)[:40].strip())
def test_tool(name: str, arguments: dict[str, Any], expected: str, stage: Stage, watch: Watch) -> None:
    found = [_called(name, arguments, caller, stage, watch) for caller in CALLERS]

    assert dict(zip(CALLERS, found, strict=True)) == dict(zip(CALLERS, expected.split(), strict=True))


def _called(name: str, arguments: dict[str, Any], caller: str, stage: Stage, watch: Watch) -> str:
    """Call a tool; the status of its envelope, or of HTTP where it came to none."""
    filled = {"name": name, "arguments": stage.filled(arguments)}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": filled}
    before = watch.state()
    answer = stage.api(stage.credential(caller), "POST", "/mcp", root="", json=body, headers=RPC)
    assert watch.state() == before
    if answer.status_code != 200:
        return str(answer.status_code)
    result = spoken(answer)
    envelope = result["structuredContent"]
    assert result["isError"] is (envelope["status"] not in ("ok", "empty"))
    assert watch.call(envelope["call_id"]) == (caller, "mcp", name, envelope["status"])
    return str(envelope["status"])
