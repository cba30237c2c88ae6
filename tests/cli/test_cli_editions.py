"""Editions and purges by command line."""

from pathlib import Path

import pytest
from cli.commands import Stacks

NOTHING = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def mill(stacks: Stacks, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A collection of `olga`'s with two editions of one document; that document's id."""
    folder: Path = tmp_path_factory.mktemp("mill")
    stacks("collection", "create", "mill", "--title", "The mill", "--owner", "olga")
    for text in ("The wheel of the mill turns left.", "The wheel of the mill turns right."):
        file = folder / "wheel.txt"
        file.write_text(text)
        [added] = stacks("document", "add", "mill", file, "--json").json
        stacks("publish", "mill")
    return str(added["document_id"])


def test_going_back_to_an_edition(stacks: Stacks, mill: str) -> None:
    [changed] = stacks("collection", "diff", "mill", "mill@1", "2", "--json").json
    assert (changed["document_id"], changed["change"], changed["from_version"], changed["to_version"]) == (
        (mill, "changed", 1, 2)
    )
    done = stacks("rollback", "mill", "mill@1", "--json").json
    assert done == {"corpus_version": "mill@3", "documents": 1, "dedup_hit": False}
    found = stacks(
        "search", "which way does the wheel turn", "--collection", "mill", "--json", token=stacks.token("olga")
    )
    assert [one["text"] for one in found.json["results"]] == ["The wheel of the mill turns left."]
    listed = stacks("collection", "versions", "mill", "--json").json
    assert [(one["corpus_version"], one["rolled_back_to"]) for one in listed][:2] == [
        ("mill@3", "mill@1"),
        ("mill@2", None),
    ]
    assert "mill@3" in stacks("collection", "versions", "mill").out
    stacks("rollback", "mill", "2")


def test_two_people_purge(stacks: Stacks, mill: str) -> None:
    ask = ("purge", "request", "mill", mill, 1, "--reason", "a court order")
    stacks(*ask, code=3)  # the operator runs the place; this is the owner's to ask
    stacks("collection", "custodians", "mill", "--owner", "olga", "--purge-confirmer", "peter")
    olga, peter = stacks.token("olga"), stacks.token("peter")
    asked = stacks(*ask, "--json", token=olga).json
    assert asked["status"] == "pending"
    for other in (olga, stacks.token("olga"), None):
        stacks("purge", "confirm", "mill", asked["id"], token=other, code=3)
    assert stacks("purge", "confirm", "mill", asked["id"], "--json", token=peter).json["status"] == "purged"
    assert "purged" in stacks("purge", "list", "mill", token=olga).out
    assert stacks("purge", "erase", "--json").json == {"erased": 1, "waiting": 0, "too_large": False}
    [listed] = stacks("purge", "list", "mill", "--json", token=peter).json
    assert listed["erased_at"] is not None
    assert "conflict" in stacks("rollback", "mill", 1, code=1).err


@pytest.mark.parametrize(
    ("code", "said", "command"),
    [
        (2, "corpus_version: not an edition of this collection", ["rollback", "mill", "handbook@1"]),
        (2, "corpus_version", ["collection", "diff", "mill", "1", "latest"]),
        (4, "not_found", ["rollback", "mill", "99"]),
        (4, "not_found", ["rollback", "nowhere", "1"]),
        (4, "not_found", ["collection", "versions", "nowhere"]),
        (4, "not_found", ["collection", "diff", "mill", "1", "99"]),
        (3, "denied", ["purge", "list", "mill"]),
        (4, "not_found", ["purge", "confirm", "nowhere", NOTHING]),
        (2, "reason", ["purge", "request", "mill", NOTHING, "1"]),
    ],
)
def test_a_refusal_has_its_exit_code(stacks: Stacks, mill: str, code: int, said: str, command: list[str]) -> None:
    assert said in stacks(*command, code=code).err
