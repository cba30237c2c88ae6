"""`stacks` as people run it: a process of its own for each command."""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 120
# Each command is forked off a process that has the program loaded but has run nothing: that saves a second a command.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["app.bootstrap"])


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    code: int | None
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be JSON and nothing else."""
        return json.loads(self.out)


class Stacks:
    """Commands on one data directory: as the operator, or as the holder of `token`."""

    def __init__(self, data_dir: Path, model_dir: Path) -> None:
        self.data_dir = data_dir
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("STACKS_")},
            "STACKS_DATA_DIR": str(data_dir),
            "STACKS_MODEL_DIR": str(model_dir.absolute()),
        }

    def __call__(
        self, *arguments: object, token: str | None = None, code: int = 0, settings: Mapping[str, str] | None = None
    ) -> Done:
        """Run a command that is to end with `code`."""
        environment = self.environment | ({} if token is None else {"STACKS_TOKEN": token}) | dict(settings or {})
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder) / "out", Path(folder) / "err"
            process = FORKS.Process(target=_run, args=([str(one) for one in arguments], environment, out, err))
            process.start()
            process.join(SECONDS)
            process.kill()
            done = Done(process.exitcode, out.read_text(), err.read_text())
        assert done.code == code, done
        return done

    def begin(self, *arguments: object, stderr: int | None = None) -> "subprocess.Popen[bytes]":
        """Start a command from nothing, as a shell does."""
        command = [sys.executable, "-m", "app", *map(str, arguments)]
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stderr=stderr)

    def token(self, subject: str) -> str:
        """A new token of `subject`."""
        return str(self("token", "create", subject, "--name", "test", "--json").json["token"])


def _run(arguments: list[str], environment: Mapping[str, str], out: Path, err: Path) -> None:
    """What a forked process does: the command, with its own streams and environment."""
    from app import bootstrap  # loaded already where this runs; the tests themselves have no use for it

    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.argv = ["stacks", *arguments]
    bootstrap.main()
