"""Exit codes, and what is said with them."""

import json
from pathlib import Path

import pytest
from cli.commands import Stacks
from support.server import free_port

NOBODY = "00000000-0000-4000-8000-000000000000"
CASES: list[tuple[int, str, list[str]]] = [
    (2, "No such option", ["collection", "list", "--everything"]),
    (2, "Missing argument", ["collection", "show"]),
    (2, "UUID", ["document", "show", "first"]),
    (2, "slug: not a slug", ["collection", "create", "A Shelf", "--title", "x"]),
    (2, "exactly one of role and principal", ["grant", "search", "shelf"]),
    (2, "--until: without a time zone", ["grant", "search", "shelf", "--role", "x", "--until", "2999-01-01"]),
    (2, "--until: not a moment", ["grant", "search", "shelf", "--role", "x", "--until", "tomorrow"]),
    (2, "expires_at: in the past", ["token", "create", "x", "--name", "x", "--expires", "2001-01-01T00:00Z"]),
    (2, "actions: not actions", ["token", "create", "x", "--name", "x", "--action", "fly"]),
    (2, "members: none named", ["role", "add", "administrator"]),
    (2, "--limit: out of range", ["calls", "--limit", "0"]),
    (3, "hint: You acted as the operator", ["search", "anything at all"]),
    (3, "hint: You acted as the operator", ["calls"]),
    (4, "not_found", ["collection", "show", "nowhere"]),
    (4, "not_found", ["document", "add", "nowhere", "pyproject.toml"]),
    (4, "not_found", ["document", "list", "nowhere"]),
    (4, "not_found", ["publish", "nowhere", "--wait"]),
    (4, "not_found", ["document", "show", NOBODY]),
    (4, "not_found", ["document", "remove", NOBODY]),
    (4, "not_found", ["revoke", NOBODY]),
    (4, "not_found", ["role", "members", "nowhere"]),
    (4, "not_found", ["token", "revoke", "nothing"]),
    (1, "conflict", ["collection", "create", "shelf", "--title", "Again"]),
    (1, "conflict", ["role", "create", "administrator"]),
]


@pytest.mark.parametrize(("code", "said", "command"), CASES, ids=[" ".join(case[2]) for case in CASES])
def test_a_refusal_has_its_exit_code(stacks: Stacks, shelf: str, code: int, said: str, command: list[str]) -> None:
    done = stacks(*command, code=code)
    assert said in done.err
    assert done.out == ""


def test_a_refusal_is_json_on_request(stacks: Stacks, shelf: str) -> None:
    refused = stacks("search", "anything", "--collection", "nowhere", "--json", code=3)
    assert refused.json["status"] == "denied"
    assert refused.json["results"] == []
    body = json.loads(refused.err)
    assert (body["code"], body["call_id"]) == ("denied", refused.json["call_id"])
    assert "STACKS_TOKEN" in body["hint"]
    wrong = json.loads(stacks("collection", "create", "A B", "--title", "x", "--json", code=2).err)
    assert wrong["details"]["field"] == "slug"


def test_a_token_that_is_not_good_here_is_refused(stacks: Stacks) -> None:
    for token in ("", "stk_nonsense"):
        assert "STACKS_TOKEN" in stacks("collection", "list", token=token, code=3).err


def test_a_narrowed_token_stays_narrow(stacks: Stacks, shelf: str) -> None:
    bounds = ("--action", "search", "--collection", shelf, "--expires", "2999-01-01T00:00:00Z")
    made = stacks("token", "create", "olga", "--name", "narrow", *bounds, "--json").json
    assert stacks("search", "Where are forklifts parked?", "--json", token=made["token"]).json["status"] == "ok"
    for command in (["publish", shelf], ["token", "list"], ["calls"], ["token", "create", "olga", "--name", "wider"]):
        stacks(*command, token=made["token"], code=3)


def test_a_bad_setting_is_named(stacks: Stacks) -> None:
    assert "STACKS_PORT" in stacks("status", settings={"STACKS_PORT": "0"}, code=2).err
    assert "STACKS_COLOUR" in stacks("config", "show", settings={"STACKS_COLOUR": "red"}, code=2).err


def test_a_database_that_is_away_is_unavailable(stacks: Stacks, tmp_path: Path) -> None:
    settings = {"STACKS_DATABASE_URL": f"postgresql://stacks_login:x@127.0.0.1:{free_port()}/stacks"}
    told = stacks("status", "--json", settings=settings, code=5)
    assert told.json["status"] == "index_unavailable"
    assert stacks("search", "anything", settings=settings, code=5).out == ""
