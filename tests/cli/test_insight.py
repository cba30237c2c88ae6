"""explain, preview, who and policy check: what they say, now and for an earlier moment, and whom they refuse."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from cli.commands import Stacks

NOBODY = UUID(int=0)
PAST = "2001-01-01T00:00:00Z"
CLAIM = '{{ principal = "{who}", action = "search", collection = "vault" }}'


@dataclass(frozen=True, slots=True)
class Vault:
    """Vera's collection of two documents; what was so between two moments; `guards` hold `watch`, who hold `gail`."""

    open: str
    closed: str
    vera: str
    gail: str
    before: str
    between: str


@pytest.fixture(scope="module")
def vault(stacks: Stacks, tmp_path_factory: pytest.TempPathFactory) -> Vault:
    files = tmp_path_factory.mktemp("vault")
    stacks("collection", "create", "vault", "--title", "A vault", "--owner", "vera")
    documents: list[str] = []
    for name, labels in (("open", ()), ("closed", ("--label", "sealed"))):
        file = files / f"{name}.txt"
        file.write_text(f"The {name} drawer of the vault holds deeds.\n")
        documents.append(stacks("document", "add", "vault", file, *labels, "--json").json[0]["document_id"])
    stacks("publish", "vault")
    for role in ("watch", "guards"):
        stacks("role", "create", role)
    stacks("role", "add", "watch", "--principal", "gail", "--group", "https://idp.example|night")
    stacks("role", "add", "guards", "--role", "watch")
    before = _now()
    stacks("grant", "search", "vault", "--role", "guards", "--reason", "rounds")
    gone = stacks("grant", "search", "vault", "--principal", "walt", "--json").json
    between = _now()
    stacks("revoke", gone["id"])
    stacks("grant", "search", "vault", "--role", "watch", "--label", "sealed", "--deny", "--reason", "sealed in May")
    opened, closed = documents
    return Vault(opened, closed, stacks.token("vera"), stacks.token("gail"), before, between)


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _verdict(stacks: Stacks, vault: Vault, *asked: str) -> bool:
    found = stacks("explain", *asked, "--json", token=vault.vera).json
    return bool(found["allowed"])


def test_a_verdict_names_every_rule_and_the_way_to_it(stacks: Stacks, vault: Vault) -> None:
    found = stacks("explain", "gail", "search", vault.closed, "--json", token=vault.vera).json
    assert (found["allowed"], found["subject"], found["collection"]) == (False, "principal:gail", "vault")
    assert [(one["effect"], one["on"], one["via"], one["reason"]) for one in found["reasons"]] == [
        ("deny", "label:sealed", ["principal:gail", "role:watch"], "sealed in May"),
        ("allow", "collection", ["principal:gail", "role:watch", "role:guards"], "rounds"),
    ]
    told = stacks("explain", "gail", "search", vault.closed, token=vault.vera).out
    assert "not allowed" in told
    assert "principal:gail > role:watch > role:guards" in told


def test_a_target_is_a_document_a_collection_or_a_label(stacks: Stacks, vault: Vault) -> None:
    assert _verdict(stacks, vault, "gail", "search", vault.open)
    assert _verdict(stacks, vault, "gail", "search", "vault")
    assert not _verdict(stacks, vault, "gail", "search", "vault#sealed")
    assert not _verdict(stacks, vault, "gail", "open", vault.open)
    assert _verdict(stacks, vault, "role:guards", "search", vault.closed)
    assert not _verdict(stacks, vault, "role:watch", "search", vault.closed)
    stranger = ("nina", "search", vault.open)
    assert not _verdict(stacks, vault, *stranger)
    assert _verdict(stacks, vault, *stranger, "--group", "https://idp.example|night")
    assert not _verdict(stacks, vault, *stranger, "--group", "night")


def test_what_was_so_is_told_as_it_was(stacks: Stacks, vault: Vault) -> None:
    for who, document, moment, verdict in (
        ("walt", vault.open, vault.between, True),
        ("walt", vault.open, vault.before, False),
        ("gail", vault.closed, vault.between, True),
        ("gail", vault.closed, vault.before, False),
    ):
        assert _verdict(stacks, vault, who, "search", document, "--at", moment) is verdict, (who, moment)
    for moment, seen in ((vault.before, set()), (vault.between, {vault.open, vault.closed})):
        found = stacks("preview", "gail", "--at", moment, "--json", token=vault.vera).json
        assert {one["id"] for one in found["documents"]} == seen
    stacks("explain", "gail", "search", vault.open, "--at", PAST, token=vault.vera, code=4)
    then = stacks("who", vault.open, "--at", vault.between, "--json", token=vault.vera).json
    assert {"kind": "principal", "name": "walt"} in then


def test_a_preview_is_of_a_principal_or_a_role(stacks: Stacks, vault: Vault) -> None:
    for who, seen in (("role:guards", {vault.open, vault.closed}), ("role:watch", {vault.open}), ("walt", set())):
        found = stacks("preview", who, "--json", token=vault.vera).json
        assert {one["id"] for one in found["documents"]} == seen, who
    assert {one["title"] for one in found["documents"]} <= {"open", "closed"}
    assert vault.open in stacks("preview", "nina", "--group", "https://idp.example|night", token=vault.vera).out


def test_who_lists_principals_groups_and_roles(stacks: Stacks, vault: Vault) -> None:
    listed = stacks("who", vault.open, "--json", token=vault.vera).json
    found = {(one["kind"], one["name"]) for one in listed}
    night = ("group", "https://idp.example|night")
    assert found == {("principal", "gail"), ("principal", "vera"), ("role", "guards"), ("role", "watch"), night}
    sealed = stacks("who", "vault#sealed", "--json", token=vault.vera).json
    assert {(one["kind"], one["name"]) for one in sealed} == {("principal", "vera"), ("role", "guards")}
    assert "gail" not in stacks("who", vault.open, "--action", "open", token=vault.vera).out


def test_who_only_searches_is_refused_answers_about_itself_too(stacks: Stacks, vault: Vault) -> None:
    for command in (("explain", "gail", "search", "vault"), ("who", "vault#sealed"), ("preview", "gail")):
        refused = stacks(*command, token=vault.gail, code=3)
        assert (refused.out, "denied" in refused.err) == ("", True)


def test_to_a_stranger_a_collection_and_a_name_that_nothing_has_are_one(stacks: Stacks, vault: Vault) -> None:
    nina = stacks.token("nina")
    for command in (("explain", "nina", "search"), ("who",)):
        answers = {stacks(*command, name, token=nina, code=4) for name in ("vault", "nowhere", "vault#sealed")}
        assert len(answers) == 1, answers


@pytest.mark.parametrize("document", ["open", "closed", "nobody's"])
def test_a_document_out_of_sight_is_not_found(stacks: Stacks, vault: Vault, document: str) -> None:
    id_ = {"open": vault.open, "closed": vault.closed}.get(document, str(NOBODY))
    for command in (("explain", "gail", "search", id_), ("who", id_)):
        assert "not_found" in stacks(*command, token=vault.gail, code=4).err


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("ACTION", ["explain", "gail", "fly", "vault"]),
        ("RESOURCE", ["explain", "gail", "search", "The Vault"]),
        ("PRINCIPAL", ["explain", "a b", "search", "vault"]),
        ("PRINCIPAL", ["preview", "role:A B"]),
        ("PRINCIPAL", ["preview", "gail", "--group", "a b"]),
        ("ACTION", ["who", "vault", "--action", "fly"]),
        ("--at", ["explain", "gail", "search", "vault", "--at", "yesterday"]),
        ("--at", ["preview", "gail", "--at", "2026-01-01T00:00:00"]),
        ("--at", ["who", "vault", "--at", "2026-01-01"]),
        ("FILE", ["policy", "check", "pyproject.toml.missing"]),
        ("Missing argument", ["policy", "check"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_question_is_named(stacks: Stacks, vault: Vault, said: str, command: list[str]) -> None:
    assert said in stacks(*command, code=2).err


def test_scenarios_are_tried_on_top_of_the_rules_in_force_and_leave_nothing(
    stacks: Stacks, vault: Vault, tmp_path: Path
) -> None:
    with _file(tmp_path, f"must_hold = [{CLAIM.format(who='gail')}]") as good:
        assert [one["passed"] for one in stacks("policy", "check", good, "--json").json] == [True]
    with _file(tmp_path, f"must_hold = [{CLAIM.format(who='walt')}]") as bad:
        failed = stacks("policy", "check", bad, "--json", code=1).json
    assert [(one["claim"], one["expected"], one["passed"]) for one in failed] == [
        ("walt may search vault", True, False)
    ]
    grant = 'given.grants = [{ principal = "walt", action = "search", collection = "vault" }]\n'
    with _file(tmp_path, f"{grant}must_hold = [{CLAIM.format(who='walt')}]") as proposed:
        assert "walt may search vault" in stacks("policy", "check", proposed).out
    assert not _verdict(stacks, vault, "walt", "search", "vault")


def test_scenarios_are_for_who_may_see_the_rules(stacks: Stacks, vault: Vault, tmp_path: Path) -> None:
    with _file(tmp_path, f"must_not_hold = [{CLAIM.format(who='walt')}]") as file:
        refused = stacks("policy", "check", file, token=vault.gail, code=3)
    assert "walt" not in refused.err + refused.out


def test_an_end_that_lies_ahead_counts_then_and_not_now(stacks: Stacks, vault: Vault) -> None:
    ends, later = (datetime.now(UTC) + timedelta(days=days) for days in (30, 31))
    stacks("grant", "search", "vault", "--principal", "hans", "--until", ends.isoformat(), token=vault.vera)
    assert _verdict(stacks, vault, "hans", "search", "vault")
    assert not _verdict(stacks, vault, "hans", "search", "vault", "--at", later.isoformat())


@contextmanager
def _file(folder: Path, body: str) -> Iterator[Path]:
    file = folder / "scenario.toml"
    file.write_text(f'[[scenarios]]\nname = "of the vault"\n{body}\n')
    yield file
