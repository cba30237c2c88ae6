"""A demo for the documentation alone: pages may change what they like in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.desk import copy_checkout
from support.server import ServerProcess


@pytest.fixture(scope="session")
def docs_server(run_dir: Path, model_dir: Path) -> Iterator[ServerProcess]:
    """The demo in a copy of the checkout, its data in `.data` there, as people start it."""
    checkout = run_dir / "docs"
    copy_checkout(checkout)
    with ServerProcess(checkout / ".data", model_dir.absolute()) as server:
        yield server
