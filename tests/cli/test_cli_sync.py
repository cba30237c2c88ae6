"""`stacks collection sync`: what it shows is what it does; documents keep their ids through moves and changes."""

from pathlib import Path

import pytest
from cli.commands import Stacks


@pytest.fixture
def kit(stacks: Stacks, tmp_path: Path) -> Path:
    """A folder of three files, synced into a collection of the same name as the test's folder."""
    folder = tmp_path / "kit"
    (folder / "deep").mkdir(parents=True)
    (folder / "lamp.txt").write_text("The signal lamp is green when the pump runs.\n")
    (folder / "deep" / "rope.md").write_text("# Rope\n\nThe long rope hangs in locker nine.\n")
    (folder / "oar.txt").write_text("Oars are varnished every spring.\n")
    (folder / ".hidden.txt").write_text("Nobody asked for this.\n")
    (folder / "link.txt").symlink_to("/etc/hostname")
    return folder


def _shelf(stacks: Stacks, name: str) -> str:
    stacks("collection", "create", name, "--title", "A kit")
    return name


def _ids(stacks: Stacks, shelf: str) -> dict[str, str]:
    return {
        one["source_id"]: one["id"]
        for one in stacks("document", "list", shelf, "--json").json
        if one["status"] != "removed"
    }


def test_a_folder_is_followed_and_documents_stay_themselves(stacks: Stacks, kit: Path) -> None:
    shelf = _shelf(stacks, "kit-followed")
    loose = kit.parent / "loose.txt"
    loose.write_text("Uploaded by hand.\n")
    stacks("document", "add", shelf, loose)
    done = stacks("collection", "sync", shelf, kit, "--yes", "--publish", "--json").json
    before = _ids(stacks, shelf)

    assert done["plan"]["new"] == ["kit/deep/rope.md", "kit/lamp.txt", "kit/oar.txt"]
    assert {one["status"] for one in done["files"]} == {"done"}
    assert done["corpus_version"] == f"{shelf}@1"
    assert set(before) == {"kit/deep/rope.md", "kit/lamp.txt", "kit/oar.txt", "loose.txt"}

    (kit / "deep" / "rope.md").rename(kit / "rope.md")
    (kit / "lamp.txt").write_text("The signal lamp is red when the pump runs.\n")
    (kit / "oar.txt").unlink()
    (kit / "bell.txt").write_text("The bell is rung at noon.\n")
    shown = stacks("collection", "sync", shelf, kit, "--dry-run")
    assert shown.out.splitlines() == [
        "new       kit/bell.txt",
        "changed   kit/lamp.txt",
        "moved     kit/deep/rope.md -> kit/rope.md",
        "deleted   kit/oar.txt",
        "1 new, 1 changed, 1 moved, 1 deleted, 0 the same",
    ]
    assert _ids(stacks, shelf) == before

    stacks("collection", "sync", shelf, kit, "--yes", "--publish")
    after = _ids(stacks, shelf)
    assert after["kit/rope.md"] == before["kit/deep/rope.md"]
    assert after["kit/lamp.txt"] == before["kit/lamp.txt"]
    assert set(after) == {"kit/rope.md", "kit/lamp.txt", "kit/bell.txt", "loose.txt"}
    assert stacks("collection", "sync", shelf, kit, "--yes").out == "0 new, 0 changed, 0 moved, 0 deleted, 3 the same\n"


def test_a_file_that_cannot_go_in_stops_neither_the_rest_nor_is_it_published(stacks: Stacks, kit: Path) -> None:
    shelf = _shelf(stacks, "kit-broken")
    (kit / "broken.pdf").write_bytes(b"%PDF-1.7 cut off")
    answer = stacks("collection", "sync", shelf, kit, "--yes", "--publish", code=1)

    assert "kit/broken.pdf" in answer.out and "unreadable" in answer.out
    assert "published" not in answer.out
    assert "kit/lamp.txt" in _ids(stacks, shelf)


def test_nothing_is_done_unasked(stacks: Stacks, kit: Path) -> None:
    shelf = _shelf(stacks, "kit-unasked")
    stacks("collection", "sync", shelf, kit, code=2)
    stacks("collection", "sync", shelf, kit, "--every", "5", code=2)
    stacks("collection", "sync", shelf, kit / "nowhere", "--yes", code=2)
    stacks("collection", "sync", "no-such-collection", kit, "--yes", code=4)

    assert _ids(stacks, shelf) == {}
