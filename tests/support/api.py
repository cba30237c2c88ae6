"""REST as somebody: one HTTP client that sends each request with the bearer token of a principal."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import httpx

from support.server import ServerProcess
from support.waiting import until

API = "/api/v1"
NOWHERE = "00000000-0000-4000-8000-000000000000"  # an id that nothing has


class Api:
    """`who` is a principal of the demo, a token, or None for nobody; paths are below `root`."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.tokens = server.tokens
        self.http = httpx.Client(base_url=server.url, timeout=60, headers={"accept-encoding": "identity"})

    def __call__(self, who: str | None, method: str, path: str, root: str = API, **more: Any) -> httpx.Response:
        """Send a request as `who`."""
        headers = {**self.headers(who), **more.pop("headers", {})}
        return self.http.request(method, root + path, headers=headers, **more)

    def headers(self, who: str | None) -> dict[str, str]:
        """The credential of `who` as a header."""
        return {} if who is None else {"authorization": f"Bearer {self.tokens.get(who, who)}"}

    def made(self, who: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """POST something that must succeed; the answer."""
        answer = self(who, "POST", path, json=body)
        assert answer.is_success, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def mint(self, subject: str | None = None, by: str = "admin", **bounds: Any) -> str:
        """A new token: of `subject`, or of `by` itself."""
        subjects = {} if subject is None else {"subject": subject}
        return str(self.made(by, "/tokens", {"name": "test", **subjects, **bounds})["token"])

    def shelf(self, owner: str = "owner") -> str:
        """A new, empty collection; its slug."""
        slug = f"shelf-{uuid4().hex[:12]}"
        self.made(owner, "/collections", {"slug": slug, "title": "A shelf"})
        return slug

    def upload(
        self, collection: str, file_name: str, content: str | bytes, who: str = "owner", **fields: Any
    ) -> httpx.Response:
        """Upload a file as the form does."""
        raw = content.encode() if isinstance(content, str) else content
        return self(who, "POST", f"/collections/{collection}/documents", files={"file": (file_name, raw)}, data=fields)

    def job(self, receipt: httpx.Response, who: str = "owner") -> dict[str, Any]:
        """Wait for the job of an upload that was taken; how it ended."""
        assert receipt.status_code == 202, receipt.text
        path = f"/jobs/{receipt.json()['job_id']}"
        until(lambda: self(who, "GET", path).json()["status"] in ("done", "failed"), path)
        ended: dict[str, Any] = self(who, "GET", path).json()
        return ended

    def add(self, collection: str, file_name: str, content: str | bytes, **fields: Any) -> str:
        """Upload a file and publish it; the document's id."""
        receipt = self.upload(collection, file_name, content, **fields)
        assert self.job(receipt)["status"] == "done"
        self.made("owner", f"/collections/{collection}/publish", {"wait": True})
        return str(receipt.json()["document_id"])

    def documents(self, collection: str, who: str = "owner") -> dict[str, dict[str, Any]]:
        """The documents of a collection that `who` may see, by source id."""
        items = self(who, "GET", f"/collections/{collection}/documents?limit=200").json()["items"]
        return {one["source_id"]: one for one in items}

    def search(self, who: str | None, query: str, **arguments: Any) -> httpx.Response:
        """`POST /search`."""
        return self(who, "POST", "/search", json={"query": query, **arguments})


def without_call_id(body: Mapping[str, Any]) -> dict[str, Any]:
    """An answer without the one thing in which two equal answers differ."""
    return {name: value for name, value in body.items() if name != "call_id"}
