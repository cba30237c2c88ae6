"""A token in an agent's hand, and narrowed tokens: never more than each of them has, now or later, on every route."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from support.api import Api

TEXT = "The tide table hangs in the harbour office."
QUERY = "Where does the tide table hang?"


@dataclass(frozen=True, slots=True)
class Harbour:
    """A collection of the demo's owner with one document, and somebody who may search it and acts through an agent."""

    api: Api
    slug: str
    document: str
    person: str
    agent: str

    def grant(self, to: str, action: str = "search", **rest: Any) -> str:
        """A rule on the collection; its id."""
        body = {"principal": to, "action": action, "collection": self.slug, **rest}
        return str(self.api.made("owner", "/grants", body)["id"])

    def delegated(self, **bounds: Any) -> str:
        """A token of the person, issued to the agent."""
        return self.api.mint(self.person, actor=self.agent, **bounds)

    def outcome(self, token: str) -> str:
        """How a search of the collection ends, over REST."""
        answer = self.api.search(token, QUERY, collection=self.slug)
        return str(answer.json()["status" if answer.status_code == 200 else "code"])


@pytest.fixture
def harbour(api: Api) -> Harbour:
    slug = api.shelf()
    some = uuid4().hex[:8]
    return Harbour(api, slug, api.add(slug, "tide.txt", TEXT), f"person-{some}", f"agent-{some}")


def test_both_must_have_the_right_and_both_are_named(harbour: Harbour) -> None:
    token = harbour.delegated()
    harbour.grant(harbour.person)
    assert harbour.outcome(token) == "denied"
    agents = harbour.grant(harbour.agent)
    assert harbour.outcome(token) == "ok"

    call = harbour.api.search(token, QUERY, collection=harbour.slug).json()["call_id"]
    row = harbour.api("auditor", "GET", f"/calls/{call}").json()
    assert (row["principal"], row["actor"]) == (harbour.person, harbour.agent)
    harbour.api("owner", "DELETE", f"/grants/{agents}")
    assert harbour.outcome(token) == "denied"


def test_a_deny_of_the_agent_counts_for_the_person_it_acts_for_alone(harbour: Harbour) -> None:
    for who in (harbour.person, harbour.agent):
        harbour.grant(who)
    harbour.grant(harbour.agent, effect="deny", document=harbour.document)

    assert harbour.outcome(harbour.delegated()) in ("empty", "denied")
    assert harbour.outcome(harbour.api.mint(harbour.person)) == "ok"


def test_lists_ids_and_texts_are_the_intersection_too(harbour: Harbour) -> None:
    api, token = harbour.api, harbour.delegated()
    harbour.grant(harbour.person)
    version = f"/documents/{harbour.document}/versions/1"
    reads = (f"/collections/{harbour.slug}", f"/collections/{harbour.slug}/documents", f"/documents/{harbour.document}")

    for path in (*reads, version, f"{version}/text"):
        assert api(token, "GET", path).status_code == 404, path
    assert harbour.slug not in api(token, "GET", "/collections").text
    harbour.grant(harbour.agent)
    for path in (*reads, version, f"{version}/text"):
        assert api(token, "GET", path).status_code == 200, path
    assert harbour.slug in api(token, "GET", "/collections").text
    assert api(token, "GET", f"{version}/original").status_code == 404


def test_an_agent_of_an_owner_changes_only_what_it_may_change_itself(harbour: Harbour) -> None:
    api = harbour.api
    token = api.mint("owner", actor=harbour.agent)
    upload: dict[str, Any] = {"files": {"file": ("new.txt", b"A new page.")}}
    rule = {"principal": "somebody", "action": "search", "collection": harbour.slug}
    asked: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("POST", f"/collections/{harbour.slug}/documents", upload),
        ("POST", f"/collections/{harbour.slug}/publish", {"json": {}}),
        ("POST", "/grants", {"json": rule}),
        ("DELETE", f"/documents/{harbour.document}", {}),
        ("POST", "/collections", {"json": {"slug": f"new-{uuid4().hex[:8]}", "title": "New"}}),
        ("POST", "/roles", {"json": {"name": f"new-{uuid4().hex[:8]}"}}),
        ("POST", "/tokens", {"json": {"name": "mine"}}),
        ("GET", "/tokens", {}),
        ("GET", "/calls", {}),
    )
    for method, path, more in asked:
        assert api(token, method, path, **more).status_code in (403, 404), (method, path)
    harbour.grant(harbour.agent, "ingest")
    assert api(token, "POST", f"/collections/{harbour.slug}/documents", **upload).status_code == 202
    assert api(token, "POST", f"/collections/{harbour.slug}/publish", json={}).status_code == 403


def test_a_narrowed_token_never_exceeds_its_owner_or_its_bounds(harbour: Harbour) -> None:
    api = harbour.api
    other = api.shelf()
    own = harbour.grant(harbour.person)
    harbour.grant(harbour.person, "open")
    bound = api.mint(harbour.person, actions=["search"], collections=[harbour.slug])
    original = f"/documents/{harbour.document}/versions/1/original"

    assert harbour.outcome(bound) == "ok"
    assert api(bound, "GET", original).status_code == 403
    api.made("owner", "/grants", {"principal": harbour.person, "action": "search", "collection": other})
    assert api.search(bound, QUERY, collection=other).json()["code"] == "denied"
    assert api.search(api.mint(harbour.person), QUERY, collection=other).json()["status"] == "empty"
    api("owner", "DELETE", f"/grants/{own}")
    assert harbour.outcome(bound) == "denied"


def test_bounds_that_no_right_fills_open_nothing(harbour: Harbour) -> None:
    wide = harbour.api.mint(harbour.person, actions=["search", "open", "manage"], collections=[harbour.slug])

    assert harbour.outcome(wide) == "denied"
    harbour.grant(harbour.person)
    assert harbour.outcome(wide) == "ok"


def test_narrowed_and_delegated_tokens_make_no_further_ones(harbour: Harbour) -> None:
    api = harbour.api
    for token in (
        harbour.delegated(),
        api.mint("owner", actions=["search", "manage"]),
        api.mint("owner", collections=[harbour.slug]),
        api.mint("admin", actor="owner"),
        api.mint("admin", actor="admin"),
        api.mint("admin", actions=["manage"]),
    ):
        for body in ({"name": "copy"}, {"name": "other", "subject": "owner"}, {"name": "free", "actor": "nobody"}):
            assert api(token, "POST", "/tokens", json=body).status_code == 403, body


def test_only_an_administrator_speaks_for_others(api: Api) -> None:
    for who in ("general", "owner", "auditor", "tester"):
        assert api(who, "POST", "/tokens", json={"name": "x", "subject": "admin"}).status_code == 403
    own = api("general", "POST", "/tokens", json={"name": "to my agent", "actor": "agent"})
    assert own.status_code == 201
