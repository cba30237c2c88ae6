"""The main job by command line, from an empty instance to an answer, and what a revocation does to it."""

import signal
from pathlib import Path

from cli.commands import Stacks

PENGUINS = "Every penguin in the garden is fed with herring at four in the afternoon.\n"


def test_from_nothing_to_an_answer(stacks: Stacks, tmp_path: Path) -> None:
    made = stacks("collection", "create", "zoo", "--title", "The zoo", "--owner", "zoe", "--json").json
    assert (made["slug"], made["owner"], made["corpus_version"]) == ("zoo", "zoe", "zoo@0")
    penguins, lions = tmp_path / "penguins.txt", tmp_path / "lions.md"
    penguins.write_text(PENGUINS)
    lions.write_text("# Lions\n\nThe lions sleep in the heated house from November until March.\n")

    added = stacks("document", "add", "zoo", penguins, lions, "--tag", "animals", "--json").json
    assert [(one["status"], one["dedup_hit"]) for one in added] == [("done", False)] * 2
    listed = stacks("document", "list", "zoo", "--json").json
    assert {(one["file_name"], one["status"]) for one in listed} == {("penguins.txt", "draft"), ("lions.md", "draft")}
    assert stacks("publish", "zoo", "--wait", "--json").json == {
        "corpus_version": "zoo@1",
        "documents": 2,
        "dedup_hit": False,
    }
    zoe = stacks.token("zoe")
    found = stacks("search", "When are the penguins fed?", "--collection", "zoo", "--json", token=zoe).json
    assert (found["status"], found["corpus_versions"]) == ("ok", ["zoo@1"])
    assert found["results"][0]["text"] in PENGUINS
    read = stacks("search", "When are the penguins fed?", token=zoe).out
    assert "zoo@1, version 1" in read
    assert "| Every penguin in the garden" in read

    again = stacks("document", "add", "zoo", penguins).out
    assert f"{penguins}: document {added[0]['document_id']}, done, dedup_hit" in again
    removed = stacks("document", "remove", added[0]["document_id"], "--json").json
    assert (removed["collection"], removed["status"]) == ("zoo", "removed")
    assert stacks("publish", "zoo", "--json").json["corpus_version"] == "zoo@2"
    gone = stacks("search", "When are the penguins fed?", "--json", token=zoe).json
    assert added[0]["document_id"] not in {one["document_id"] for one in gone["results"]}

    logged = stacks("calls", "--json", "--limit", 100, token=zoe).json
    assert {"search", "publish", "document add"} <= {one["operation"] for one in logged}
    assert {one["entrypoint"] for one in logged} == {"cli"}
    assert found["call_id"] in {one["call_id"] for one in logged if one["outcome"] == "ok"}


def test_a_revocation_holds_from_the_next_call_on(stacks: Stacks, shelf: str) -> None:
    stacks("role", "create", "drivers")
    assert stacks("role", "add", "drivers", "--principal", "dan", "--json").json["principals"] == ["dan"]
    both = stacks("role", "add", "drivers", "--principal", "dora", "--group", "https://idp.example|cab", "--json").json
    assert both == {"principals": ["dan", "dora"], "groups": ["https://idp.example|cab"], "roles": []}
    olga, dan = stacks.token("olga"), stacks.token("dan")
    question = ("search", "Where are forklifts parked?", "--collection", shelf)
    stacks(*question, token=dan, code=3)

    rule = stacks("grant", "search", shelf, "--role", "drivers", "--reason", "shifts", "--json", token=olga).json
    assert "north gate" in stacks(*question, token=dan).out
    assert stacks("revoke", rule["id"], "--json", token=olga).json["revoked_by"] == "olga"
    stacks(*question, token=dan, code=3)
    assert rule["id"] not in {one["id"] for one in stacks("grants", "--json").json}
    assert rule["id"] in {one["id"] for one in stacks("grants", "--all", "--collection", shelf, "--json").json}

    direct = ("--principal", "dan", "--until", "2999-01-01T00:00:00Z")
    stacks("grant", "search", shelf, *direct)
    assert "north gate" in stacks(*question, token=dan).out
    stacks("grant", "search", shelf, "--role", "drivers", "--deny")
    stacks(*question, token=dan, code=3)
    assert stacks("role", "remove", "drivers", "--principal", "dan", "--json").json["principals"] == ["dora"]
    assert "north gate" in stacks(*question, token=dan).out
    stacks("role", "remove", "drivers", "--principal", "dan", code=4)

    token_id = stacks("token", "list", "dan", "--json").json[0]["id"]
    assert [one["id"] for one in stacks("token", "list", "--json", token=dan).json] == [token_id]
    stacks("token", "list", "olga", token=dan, code=3)
    stacks("token", "revoke", token_id, token=dan)
    assert "holds no token that is good here" in stacks(*question, token=dan, code=3).err


def test_files_go_in_beside_a_running_worker(stacks: Stacks, shelf: str, tmp_path: Path) -> None:
    files = [tmp_path / f"note-{number}.txt" for number in range(4)]
    for file in files:
        file.write_text(f"A note about {file.name}, to be read by whoever takes it first.\n")
    worker = stacks.begin("worker")
    try:
        added = stacks("document", "add", shelf, *files, "--json").json
    finally:
        worker.send_signal(signal.SIGTERM)
    assert [one["status"] for one in added] == ["done"] * 4
    assert worker.wait(60) == 0
