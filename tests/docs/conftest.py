"""A demo for the documentation alone: pages may change what they like in it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.commands import ROOT
from docs.desk import copy_checkout
from docs.forks import client
from support.server import ServerProcess
from support.waiting import until


@pytest.fixture(scope="session")
def docs_server(run_dir: Path, model_dir: Path) -> Iterator[ServerProcess]:
    """The demo in a copy of the checkout, its data in `.data` there, as people start it."""
    checkout = run_dir / "docs"
    copy_checkout(checkout)
    with ServerProcess(checkout / ".data", model_dir.absolute()) as server:
        yield server


@pytest.fixture(scope="session")
def docs_path(run_dir: Path) -> Iterator[str]:
    """The PATH of the pages: our own programs first, `stacks` forked off a process that has it loaded."""
    address = run_dir / "docs.socket"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    forks = subprocess.Popen([sys.executable, "-m", "docs.forks", address], env=environment)
    try:
        until(address.exists, "the socket of the forking process")
        stacks = client(run_dir / "docs-bin", address)
        yield os.pathsep.join([str(stacks), str(Path(sys.executable).parent), os.environ["PATH"]])
    finally:
        forks.terminate()
        forks.wait()
