"""What the rows of the matrix are about, on a real server; and whether a refused call has changed anything there."""

import json
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from psycopg import sql
from support.api import NOWHERE, Api
from support.waiting import until

LABEL = "closed"
_TABLES = """
    SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'calls'
    ORDER BY relname
"""
_STATE = sql.SQL("SELECT {}, count(*), max(xmin::text::bigint) FROM {}")


class Stage:
    """A collection with an open and a closed document, its readers and keepers, and things to be changed.

    `stage["name"]` is what a row means by `{name}`. What a name that begins with `new_` stands for is made when it is
    asked for, and serves until a call succeeds: so no cell disturbs another, for what is refused changes nothing.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self._callers = {"foreign": api.mint("foreign"), "forged": _forged(api.tokens["owner"])}
        self._known = {"nothing": NOWHERE, "one": "1"}
        self._fresh: dict[str, str] = {}
        self._grants: list[str] = []
        annex = api.shelf()
        api.add(annex, "annex.txt", "An annex about nothing that is asked for here.")
        assert api("owner", "PUT", f"/collections/{annex}/custodians", json={"owner": "foreign"}).status_code == 200
        shelf = self._known["shelf"] = self._shelf()
        for name, labels in (("open", ""), ("closed", LABEL)):
            self._known[name], self._known[f"job_of_{name}"] = self._draft(shelf, labels)
        api.made("owner", f"/collections/{shelf}/publish")
        archive = self._known["archive"] = self._shelf()
        custodians = {"owner": "owner", "purge_confirmer": "tester"}
        assert api("owner", "PUT", f"/collections/{archive}/custodians", json=custodians).status_code == 200
        self._known["role"] = self._role()
        self._known["call"] = api.search("owner", "tides", collection=shelf).json()["call_id"]

    def credential(self, caller: str) -> str | None:
        """What `caller` presents."""
        return None if caller == "nobody" else self._callers.get(caller, caller)

    def __getitem__(self, name: str) -> str:
        """What a row means by `name`."""
        if name in self._known:
            return self._known[name]
        if name not in self._fresh:
            self._fresh[name] = self._new(name)
        return self._fresh[name]

    def used(self, caller: str, answer: httpx.Response) -> None:
        """A call has succeeded: what was new is not any more, and who made a collection is not to keep its rights."""
        self._fresh.clear()
        if '"status":"purged"' in answer.text:
            until(self._is_erased, "the erasing of the purge")  # else that would change things under the next cell
        if answer.status_code == 201 and "corpus_version" in answer.text:
            path = f"/collections/{answer.json()['slug']}/custodians"
            assert self.api(self.credential(caller), "PUT", path, json={"owner": "heir"}).status_code == 200

    def _new(self, name: str) -> str:
        api, slug = self.api, f"matrix-{uuid4().hex[:12]}"
        match name:
            case "new_slug":
                return slug
            case "new_shelf":
                return self._shelf()
            case "new_drafts":
                shelf = self._shelf()
                self._draft(shelf)
                return shelf
            case "new_editions":
                shelf = self._shelf()
                for _ in range(2):
                    self._draft(shelf)
                    api.made("owner", f"/collections/{shelf}/publish")
                return shelf
            case "new_superseded":
                return self._superseded()
            case "new_purge":
                body = {"document_id": self._superseded(), "version": 1, "reason": "matrix"}
                return str(api.made("owner", f"/collections/{self['archive']}/purges", body)["id"])
            case "new_document" | "new_closed":
                document, _ = self._draft(self["shelf"], LABEL if name == "new_closed" else "")
                api.made("owner", f"/collections/{self['shelf']}/publish")
                return document
            case "new_role":
                return self._role()
            case "new_grant":
                return self._grant(self["shelf"], principal="guest", action="search")
            case "new_token":
                return str(api.made("owner", "/tokens", {"name": "matrix"})["id"])
        raise KeyError(name)

    def _shelf(self) -> str:
        shelf = self.api.shelf()
        for action in ("search", "open"):
            for principal in ("general", "restricted"):
                self._grant(shelf, principal=principal, action=action)
            self._grant(shelf, principal="general", action=action, label=LABEL, effect="deny")
        return shelf

    def _grant(self, collection: str, **rule: str) -> str:
        self._grants.append(str(self.api.made("owner", "/grants", {"collection": collection, **rule})["id"]))
        return self._grants[-1]

    def leave(self) -> None:
        """End every rule made here: the demo's principals see again what they saw before."""
        for grant in self._grants:
            assert self.api("admin", "DELETE", f"/grants/{grant}").status_code in (200, 404)

    def _draft(self, shelf: str, labels: str = "") -> tuple[str, str]:
        """A document that waits for its publish, and the job that read it."""
        name = uuid4().hex
        receipt = self.api.upload(shelf, f"{name}.txt", f"Of the tides, by {name}.", labels=labels)
        assert self.api.job(receipt)["status"] == "done"
        return receipt.json()["document_id"], receipt.json()["job_id"]

    def _superseded(self) -> str:
        """A document of the archive with an earlier version than the one that is live."""
        name = uuid4().hex
        self.api.add(self["archive"], name, f"Of the tides, by {name}.")
        return self.api.add(self["archive"], name, f"Of the tides, again by {name}.")

    def _is_erased(self) -> bool:
        purges = self.api("owner", "GET", f"/collections/{self['archive']}/purges?limit=200").json()["items"]
        return all(one["erased_at"] for one in purges if one["status"] == "purged")

    def _role(self) -> str:
        name = f"matrix-{uuid4().hex[:12]}"
        self.api.made("owner", "/roles", {"name": name})
        self._grant(self["shelf"], role=name, action="search")
        return name

    def filled(self, given: Any) -> Any:
        """`given` with every name in braces replaced."""
        if isinstance(given, str):
            return given.format_map(self)
        if isinstance(given, dict):
            return {name: self.filled(value) for name, value in given.items()}
        return tuple(map(self.filled, given)) if isinstance(given, tuple) else given


def _forged(token: str) -> str:
    return token[:-1] + ("A" if token[-1] != "A" else "B")


def spoken(answer: httpx.Response) -> dict[str, Any]:
    """The result in an MCP answer, whether it came as JSON or as an event."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    result: dict[str, Any] = json.loads(lines[0] if lines else answer.text)["result"]
    return result


class Watch:
    """Whether any row of any table but the call log came, went or was changed."""

    def __init__(self, behind: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._behind = behind
        tables = [str(name) for (name,) in behind.execute(_TABLES)]
        parts = [_STATE.format(sql.Literal(name), sql.Identifier(name)) for name in tables]
        self._query = sql.SQL(" UNION ALL ").join(parts)

    def state(self) -> list[tuple[object, ...]]:
        """Something that is equal before and after where nothing was changed."""
        return sorted(self._behind.execute(self._query).fetchall(), key=str)

    def call(self, call_id: str) -> tuple[object, ...] | None:
        """Who called what, and how it ended, by the log."""
        statement = "SELECT principal, entrypoint, operation, outcome FROM calls WHERE call_id = %s"
        return self._behind.execute(statement, [call_id]).fetchone()
