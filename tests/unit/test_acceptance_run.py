"""Whole runs of the acceptance suite against a small server that is true to the protocol.

The server is the MCP SDK's own with the few REST routes the suite uses. It holds one document in an open collection and
knows one closed collection. Faults are switched on by name.
"""

import csv
import hashlib
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import uvicorn
from mcp.server import Server
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from acceptance.__main__ import main
from acceptance.client import McpCaller
from acceptance.credentials import Credentials, Holder

TEXT = "# Travel\n\nHotels: up to 40 euro a night. Командировка: 28 дней."
SHA = hashlib.sha256(TEXT.encode()).hexdigest()
DOCUMENT, CHUNK = str(uuid.uuid4()), str(uuid.uuid4())
TOKENS = ("stk_general", "stk_owner")
START = TEXT.index("Hotels")


def fragment() -> dict[str, Any]:
    return {
        "document_id": DOCUMENT,
        "document_version": 1,
        "corpus_version": "handbook@1",
        "collection": "handbook",
        "title": "Travel",
        "text": TEXT[START:],
        "source_uri": f"http://host/documents/{DOCUMENT}/versions/1?start={START}&end={len(TEXT)}",
        "media_type": "text/markdown",
        "page": None,
        "heading_path": ["Travel"],
        "char_start": START,
        "char_end": len(TEXT),
        "content_sha256": SHA,
        "published_at": "2026-11-30T12:00:00Z",
        "superseded": False,
        "chunk_id": CHUNK,
        "score": 0.5,
    }


class FakeStacks:
    """`faults`: `tells` (a denial names the closed collection), `open` (no token asked), `shape` (misshapen answer)."""

    def __init__(self) -> None:
        self.faults: set[str] = set()

    def envelope(self, query: str, collection: str | None) -> dict[str, Any]:
        status = "denied" if collection not in (None, "handbook") else "ok" if "hotel" in query else "empty"
        message = f"{collection} is closed" if "tells" in self.faults and collection == "board" else ""
        answer: dict[str, Any] = {
            "status": status,
            "call_id": str(uuid.uuid4()),
            "message": message,
            "corpus_versions": [] if status == "denied" else ["handbook@1"],
            "results": [fragment()] if status == "ok" else [],
        }
        return answer | ({"results": "none"} if "shape" in self.faults else {})

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        properties = {"query": {"type": "string"}, "collection": {"type": "string"}, "limit": {"type": "integer"}}
        tool = types.Tool(
            name="search_documents",
            input_schema={"type": "object", "additionalProperties": False, "properties": properties},
            output_schema={"type": "object", "properties": {"results": {"type": "array"}}, "required": ["results"]},
            annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        )
        return types.ListToolsResult(tools=[tool])

    async def call_tool(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        answer = self.envelope(str(arguments["query"]), arguments.get("collection"))
        return types.CallToolResult(
            content=[types.TextContent(text=json.dumps(answer))],
            structured_content=answer,
            is_error=answer["status"] == "denied",
        )

    async def search(self, request: Request) -> Response:
        body = await request.json()
        answer = self.envelope(body["query"], body.get("collection"))
        if answer["status"] != "denied":
            return JSONResponse(answer)
        detail = {"code": "denied", "call_id": answer["call_id"], "detail": answer["message"]}
        return JSONResponse(detail, status_code=403, media_type="application/problem+json")

    async def collections(self, request: Request) -> Response:
        # One item a page, so that the cursor is used.
        last = request.query_params.get("cursor") == "2"
        return JSONResponse(
            {"items": [{"slug": "board" if last else "handbook"}], "next_cursor": None if last else "2"}
        )

    async def documents(self, request: Request) -> Response:
        here = request.path_params["slug"] == "handbook"
        return JSONResponse(
            {"items": [{"id": DOCUMENT, "source_id": "travel.md"}] if here else [], "next_cursor": None}
        )

    async def text(self, _request: Request) -> Response:
        return JSONResponse({"document_id": DOCUMENT, "version": 1, "text": TEXT, "pages": [], "content_sha256": SHA})

    def app(self) -> ASGIApp:
        server: Server[Any] = Server(
            "fake-stacks", version="0.9", on_list_tools=self.list_tools, on_call_tool=self.call_tool
        )
        routes = [
            Route("/api/v1/search", self.search, methods=["POST"]),
            Route("/api/v1/collections", self.collections),
            Route("/api/v1/collections/{slug}/documents", self.documents),
            Route("/api/v1/documents/{id}/versions/{n}/text", self.text),
        ]
        inner = server.streamable_http_app(custom_starlette_routes=routes)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            given = dict(scope.get("headers", [])).get(b"authorization", b"").decode()
            if scope["type"] == "http" and "open" not in self.faults and given.removeprefix("Bearer ") not in TOKENS:
                await Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})(scope, receive, send)
            else:
                await inner(scope, receive, send)

        return guarded


@contextmanager
def serving(stacks: FakeStacks) -> Iterator[str]:
    """Serve on a free port of 127.0.0.1; yields the address, stops on leaving."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(stacks.app(), log_level="error", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


QUESTIONS = """
[[questions]]
id = "hotel"
role = "general"
query = "hotel price"
collection = "handbook"
outcome = "ok"
document = "travel.md"
edition = 1
contains = "40 euro"
never = ["floor price"]

[[questions]]
id = "nothing"
role = "general"
query = "volcano"
outcome = "empty"

[[questions]]
id = "closed"
role = "general"
query = "hotel price"
collection = "board"
outcome = "denied"
"""
CORPUS = """
[[documents]]
source_id = "travel.md"
path = "travel.md"
edition = 1
"""


@pytest.fixture
def stacks() -> FakeStacks:
    return FakeStacks()


@pytest.fixture
def address(stacks: FakeStacks) -> Iterator[str]:
    with serving(stacks) as url:
        yield url


@pytest.fixture
def options(tmp_path: Path, address: str) -> list[str]:
    (tmp_path / "questions.toml").write_text(QUESTIONS, encoding="utf-8")
    (tmp_path / "corpus.toml").write_text(CORPUS, encoding="utf-8")
    (tmp_path / "travel.md").write_text(TEXT, encoding="utf-8")
    principals = {name: {"subject": name, "token": f"stk_{name}"} for name in ("general", "owner")}
    credentials = {"url": address, "mcp_url": f"{address}/mcp", "principals": principals}
    (tmp_path / "credentials.json").write_text(json.dumps(credentials), encoding="utf-8")
    files = {"--credentials": "credentials.json", "--questions": "questions.toml", "--out": "report"}
    return [word for name, file in files.items() for word in (name, str(tmp_path / file))]


def verdicts(folder: Path) -> dict[str, str]:
    with (folder / "report" / "protocol.csv").open(encoding="utf-8-sig", newline="") as file:
        return {line["question id"]: line["verdict"] for line in csv.DictReader(file)}


def test_a_right_server_passes(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 0
    assert capsys.readouterr().out.startswith("7 of 7 passed")
    assert set(verdicts(tmp_path).values()) == {"pass"}
    assert "fake-stacks 0.9" in (tmp_path / "report" / "protocol.html").read_text(encoding="utf-8")
    assert "stk_" not in "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "report").iterdir())


@pytest.mark.parametrize(
    ("fault", "failing"),
    [
        ("tells", {"suite:forbidden-equals-unknown:general:board"}),
        ("open", {"suite:no-token", "suite:unknown-token"}),
        ("shape", {"hotel", "nothing", "closed"}),
    ],
)
def test_a_wrong_server_fails_by_name(
    options: list[str],
    stacks: FakeStacks,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fault: str,
    failing: set[str],
) -> None:
    stacks.faults.add(fault)
    assert main(options) == 1
    assert {name for name, verdict in verdicts(tmp_path).items() if verdict != "pass"} == failing
    printed = capsys.readouterr().out
    assert all(f"FAIL {name}\n" in printed for name in failing)


def test_a_file_that_changed_since_it_was_published_fails(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "travel.md").write_text(f"{TEXT} ", encoding="utf-8")
    assert main(options) == 1
    assert "content_sha256 is not that of travel.md, edition 1" in verdicts(tmp_path)["hotel"]


def test_no_server_is_no_failed_answer(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "credentials.json"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
        live = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(live | {"url": dead, "mcp_url": f"{dead}/mcp"}), encoding="utf-8")
        assert main(options) == 2
    assert dead in capsys.readouterr().err
    assert not (tmp_path / "report").exists()


def test_a_token_the_server_refuses_is_named_as_such(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "credentials.json"
    path.write_text(path.read_text(encoding="utf-8").replace("stk_general", "stk_gone"), encoding="utf-8")
    assert main(options) == 2
    message = capsys.readouterr().err
    assert "HTTP 401" in message
    assert "stk_gone" not in message


def test_a_role_without_a_token_is_wrong_usage(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "questions.toml"
    path.write_text(QUESTIONS.replace('role = "general"', 'role = "stranger"'), encoding="utf-8")
    assert main(options) == 2
    assert "stranger" in capsys.readouterr().err


async def test_the_wire_is_kept_beside_the_answer(address: str) -> None:
    caller = McpCaller(Credentials(address, f"{address}/mcp", {"general": Holder("general", "stk_general")}))
    answer = await caller.search("general", {"query": "hotel"})
    assert answer.failure is None
    assert json.loads(answer.text) == answer.structured
    assert TEXT[START:] in set(answer.call.strings())
