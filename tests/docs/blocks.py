"""The fenced blocks of a Markdown page: what is in them, and what their info string says of them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

RUN = {"sh", "bash", "console", "python"}
PARSED = {"json", "toml", "yaml"}
SHOWN = {"text", "mermaid"}  # for people alone; nothing is checked
_FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_OPTIONS = {
    "exit": re.compile(r"[0-9]+"),  # sh: the exit code it must end with
    "output": re.compile(""),  # json: has the shape of what the block before it printed
    "llamaindex": re.compile(""),  # python: runs where LlamaIndex is installed
}


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `options` are the words after the language: `exit=3` is kept as `{"exit": "3"}`."""

    page: Path
    line: int
    language: str
    text: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order. AssertionError for one that is of no known kind, or never ends."""
    found: list[Block] = []
    lines = enumerate(page.read_text().split("\n"), start=1)
    for number, line in lines:
        if opening := _FENCE.match(line):
            inside: list[str] = []
            for _, following in lines:
                if following.strip() == opening["fence"]:
                    break
                inside.append(following)
            else:
                raise AssertionError(f"{page.name}:{number}: this block never ends")
            found.append(_block(page, number, opening["info"], "\n".join(inside) + "\n"))
    return found


def _block(page: Path, line: int, info: str, text: str) -> Block:
    language, *words = info.split() or [""]
    place = f"{page.name}:{line}"
    known = RUN | PARSED | SHOWN
    assert language in known, f"{place}: {language or 'no language'}: nothing checks it; known: {sorted(known)}"
    options = {name: value for name, _, value in (word.partition("=") for word in words)}
    for name, value in options.items():
        assert name in _OPTIONS and _OPTIONS[name].fullmatch(value), f"{place}: {name}: no such option"
    return Block(page, line, language, text, options)
