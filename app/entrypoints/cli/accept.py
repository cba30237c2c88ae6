"""`stacks accept`: run the acceptance suite, a program of its own, against the running server."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.entrypoints.cli.kit import Json, kit
from app.entrypoints.cli.output import show
from app.errors import NotConfigured

ROOT = Path(__file__).parents[3]
OUTCOMES = {0: "passed", 1: "failed"}


def accept(
    context: typer.Context,
    credentials: Annotated[Path | None, typer.Option(help="By default those that the demo wrote.")] = None,
    out: Annotated[Path, typer.Option(help="Where the protocol goes.")] = Path("acceptance-report"),
    as_json: Json = False,
) -> None:
    """Ask the running server the fixed questions of the fixture corpus, and write the protocol.

    Exit code 0 when all passed, 1 when any failed, 2 when the suite could not be run.
    """
    questions = ROOT / "fixtures" / "questions.toml"
    if not questions.exists():
        raise NotConfigured("The acceptance suite and its fixtures are not installed here; run it from a checkout.")
    holders = credentials or Path(kit(context).settings().data_dir) / "demo" / "credentials.json"
    command: list[str | Path] = [sys.executable, "-m", "acceptance", "--questions", questions]
    command += ["--credentials", holders.absolute(), "--out", out.absolute()]
    # It is a client like any other: it must not find our settings, let alone our secrets.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STACKS_")}
    written = sys.stderr if as_json else None
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=written, check=False)
    if as_json:
        outcome = OUTCOMES.get(done.returncode, "unusable")
        show({"status": outcome, "exit_code": done.returncode, "protocol": str(out.absolute())}, as_json=True)
    raise SystemExit(done.returncode)
