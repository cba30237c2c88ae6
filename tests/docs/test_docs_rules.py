"""The rules by which the documentation is checked: what is false or unknown fails."""

from pathlib import Path
from typing import Any

import pytest
from docs.blocks import Block, blocks
from docs.commands import ELSEWHERE, ROOT, console, printed, script
from docs.shapes import differences


def page(folder: Path, text: str) -> Path:
    """A page with this text."""
    written = folder / "page.md"
    written.write_text(text)
    return written


def test_blocks_are_found_with_their_lines_and_options(tmp_path: Path) -> None:
    text = "# A\n\n```sh exit=3\nfalse\n```\n\n- item\n  ~~~text\n  ```\n  ~~~\n"
    first, second = blocks(page(tmp_path, text))
    assert first == Block(tmp_path / "page.md", 3, "sh", "false\n", {"exit": "3"})
    assert (second.line, second.language, second.text.strip()) == (8, "text", "```")


@pytest.mark.parametrize("info", ["", "perl", "sh exit", "sh exit=x", "json outputs"])
def test_a_block_that_nothing_checks_fails(tmp_path: Path, info: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        blocks(page(tmp_path, f"```{info}\n```\n"))


def test_a_block_without_an_end_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="never ends"):
        blocks(page(tmp_path, "```sh\ntrue\n"))


def test_what_is_covered_elsewhere_is_covered() -> None:
    assert [place for place in ELSEWHERE.values() if not (ROOT / place).exists()] == []
    assert script("make demo    # the appliance\nmake demolish\n") == ":\nmake demolish\n"


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("docker compose up --build --detach --wait server worker", ":"),
        ("A=b docker compose up --scale worker=3 \\\n  worker", ":"),
        ("docker compose exec server stacks token list --json", "stacks token list --json"),
        ("docker compose exec postgres psql --list", ":"),
    ],
)
def test_container_commands_are_run_on_the_demo_or_not_at_all(line: str, run: str) -> None:
    assert script(line) == run


@pytest.mark.parametrize("line", ["docker compose up nobody", "docker compose exec nobody stacks status"])
def test_a_container_that_is_not_there_fails(line: str) -> None:
    with pytest.raises(AssertionError, match="nobody"):
        script(line)


def test_what_a_console_shows_must_be_printed() -> None:
    commands, shown = console("$ stacks status\nstatus: ok\n\n$ date\n2026-…\n")
    assert (commands, shown) == ("stacks status\ndate", ["status: ok", "2026-…"])
    assert printed("2026-…", "a\n 2026-12-01 \n")
    assert not printed("status: ok", "status: okay\n")


@pytest.mark.parametrize(
    ("sample", "real", "count"),
    [
        ({"a": [1, "x"], "b": None}, {"a": [2.5], "b": {}}, 0),
        ({"a": 1}, {"a": 1, "b": 2}, 1),
        ({"a": []}, {"a": [1]}, 1),
        ({"a": [{"b": True}]}, {"a": [{"b": 1}]}, 1),
        ({"a": {}}, {"a": []}, 1),
    ],
)
def test_a_sample_has_the_shape_of_what_is_real(sample: Any, real: Any, count: int) -> None:
    assert len(list(differences(sample, real))) == count
