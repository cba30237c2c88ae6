"""Files that cannot go in, and names that would give orders to a terminal."""

import json
import os
import termios
from pathlib import Path

import fpdf
from cli.commands import Stacks

RED = "\x1b[31m"


def locked_pdf() -> bytes:
    """A PDF that opens with a password only."""
    document = fpdf.FPDF()
    document.add_page()
    document.set_font("helvetica", size=12)
    document.cell(text="Nobody reads this without the password.")
    document.set_encryption(owner_password="owner", user_password="user")
    return bytes(document.output())


def test_each_file_that_cannot_go_in_is_named_and_the_others_go_in(stacks: Stacks, shelf: str, tmp_path: Path) -> None:
    files = {
        "locked.pdf": locked_pdf(),
        "empty.txt": b"",
        "cut.pdf": b"%PDF-1.4\n1 0 obj\n",
        "unknown.bin": bytes(range(256)) * 20,
        "first.txt": b"The first of two files that can be read well enough.\n",
        "second.txt": b"The second of two files that can be read well enough.\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in ("locked.pdf", "first.txt", "empty.txt", "cut.pdf", "unknown.bin")]
    paths += [tmp_path / "missing.txt", tmp_path, tmp_path / "second.txt"]

    done = stacks("document", "add", shelf, *paths, "--json", code=1)
    codes = {Path(one["file"]).name: (one["status"], one["code"]) for one in done.json}
    assert codes == {
        "locked.pdf": ("failed", "password_required"),
        "first.txt": ("done", None),
        "empty.txt": ("failed", "empty_document"),
        "cut.pdf": ("failed", "unreadable"),
        "unknown.bin": ("failed", "unsupported_type"),
        "missing.txt": ("failed", "unreadable"),
        tmp_path.name: ("failed", "unreadable"),
        "second.txt": ("done", None),
    }
    said = stacks("document", "add", shelf, *paths[:2], code=1).out
    assert f"{paths[0]}: password_required: " in said
    assert "dedup_hit" in said


def test_two_files_of_one_name_do_not_become_versions_of_one_document(stacks: Stacks, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.txt").write_text(f"Notes of {folder}")
    both = (tmp_path / "a" / "notes.txt", tmp_path / "b" / "notes.txt")
    assert "two files are called notes.txt" in stacks("document", "add", "shelf", *both, code=2).err
    assert "--title" in stacks("document", "add", "shelf", *both, "--title", "Notes", code=2).err


def test_names_give_no_orders_to_a_terminal(stacks: Stacks, shelf: str, tmp_path: Path) -> None:
    hostile = tmp_path / f"evil{RED}\x9b2J\u202e.txt"
    hostile.write_text("Somebody thought of a name for this file that a terminal obeys.\n")
    latin = os.fsencode(tmp_path / "caf") + b"\xe9.txt"
    Path(os.fsdecode(latin)).write_text("A name that is no UTF-8 belongs to a file all the same.\n")
    titled = tmp_path / "titled.md"
    titled.write_text(
        f"# Title{RED}\x9b2J of a page\n\nIts heading is shown as a title, and must not colour anything.\n"
    )

    added = stacks("document", "add", shelf, hostile, os.fsdecode(latin), titled, code=1)
    assert_harmless(added.out + added.err)
    assert "invalid_request: file_name: holds control characters" in added.out
    assert "caf\ufffd.txt: document " in added.out
    for output in ([], ["--json"]):
        listed = stacks("document", "list", shelf, *output).out
        assert_harmless(listed)
    assert any(one["source_id"] == "caf\ufffd.txt" for one in json.loads(listed))
    stacks("publish", shelf)
    olga = stacks.token("olga")
    for output in ([], ["--json"]):
        assert_harmless(stacks("search", "a heading that must not colour anything", *output, token=olga).out)
    refused = stacks("collection", "create", "red", "--title", f"Red{RED}", code=2)
    assert_harmless(refused.err)


def test_progress_is_shown_on_a_terminal_only(stacks: Stacks, shelf: str, tmp_path: Path) -> None:
    file = tmp_path / f"progress{RED}.txt"
    file.write_text("A file whose way in is shown on the way.\n")
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 500))  # a narrow terminal cuts a long path short
    adding = stacks.begin("document", "add", shelf, file, "--json", stderr=theirs)
    os.close(theirs)
    assert adding.wait(120) == 1
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "progress\ufffd[31m.txt" in shown
    assert f"progress{RED}" not in shown
    assert stacks("document", "add", shelf, file, code=1).err == ""


def assert_harmless(output: str) -> None:
    """Nothing in `output` would be obeyed by a terminal, lines aside."""
    assert [character for character in output if not character.isprintable() and character != "\n"] == []
