"""Every command takes `--json`, and prints JSON and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.commands import ROOT, Stacks

from app.entrypoints.cli.main import COMMANDS, GROUPS

RUNS_ON = {"serve", "worker", "mcp", "demo", "accept"}  # tried elsewhere: they need, or are, a server


def names() -> Iterator[str]:
    """Every command, as it is typed."""
    yield from COMMANDS
    for group, (_, commands) in GROUPS.items():
        yield from (f"{group} {name}" for name in commands)


def test_every_command_prints_json(stacks: Stacks, shelf: str, tmp_path: Path) -> None:
    file = tmp_path / "json.txt"
    file.write_text("A file that is added so that the answer can be parsed.\n")
    olga = stacks.token("olga")
    made: dict[str, Any] = {}

    def run(command: str, *rest: object, token: str | None = None) -> None:
        made[command] = stacks(*command.split(), *rest, "--json", token=token).json

    run("migrate")
    run("status")
    run("config show")
    run("collection create", "parsed", "--title", "Parsed")
    run("collection list")
    run("collection show", "parsed")
    run("document add", "parsed", file, "--title", "One", "--source-id", "one", "--label", "plain", "--tag", "x")
    run("document list", "parsed")
    document = made["document list"][0]["id"]
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 and nothing else")
    stacks("document", "add", "parsed", broken, code=1)
    run("job list", "parsed", "--status", "failed")
    job = made["job list"][0]["id"]
    run("job retry", job)
    run("job cancel", job)
    run("job show", job)
    run("document show", document)
    run("publish", "parsed")
    run("collection versions", "parsed")
    run("collection diff", "parsed", "0", "1")
    run("collection sync", "parsed", tmp_path, "--dry-run")
    run("document remove", document)
    run("publish", "parsed")
    run("rollback", "parsed", 1)
    run("document remove", document)
    run("publish", "parsed")
    run("collection custodians", "parsed", "--owner", "paula", "--purge-confirmer", "peter")
    paula, peter = stacks.token("paula"), stacks.token("peter")
    run("purge request", "parsed", document, 1, "--reason", "parsing", token=paula)
    run("purge withdraw", "parsed", made["purge request"]["id"], token=paula)
    run("purge request", "parsed", document, 1, "--reason", "parsing", token=paula)
    run("purge confirm", "parsed", made["purge request"]["id"], token=peter)
    run("purge list", "parsed", token=peter)
    run("purge erase")
    run("role create", "parsers")
    run("role add", "parsers", "--principal", "paula")
    run("role members", "parsers")
    run("role list")
    run("role remove", "parsers", "--principal", "paula")
    run("grant", "open", "parsed", "--principal", "paula", "--label", "plain", "--from", "2999-01-01T00:00:00+03:00")
    run("grants")
    run("explain", "paula", "open", "parsed#plain")
    run("preview", "paula")
    run("who", "parsed", "--action", "open")
    run("group add", "readers", "--principal", "paula")
    run("group members", "readers")
    run("group remove", "readers", "--principal", "paula")
    run("policy check", *sorted((ROOT / "policies" / "scenarios").iterdir()))
    run("revoke", made["grant"]["id"])
    run("token create", "paula", "--name", "parsing", "--actor", "agent")
    run("token list", "paula")
    run("token revoke", made["token create"]["id"])
    run("search", "Where are forklifts parked?", token=olga)
    run("calls", token=olga)

    assert set(made) | RUNS_ON == set(names())
    assert made["status"]["status"] == "ok"
    assert f"{shelf}@" in str(made["status"])


@pytest.mark.parametrize("command", sorted(RUNS_ON))
def test_a_command_that_runs_on_takes_json_too(stacks: Stacks, command: str) -> None:
    assert "--json" in stacks(command, "--help").out
