"""One data directory, with a Postgres of its own, for all tests of the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.commands import Stacks

from app.db.embedded import EmbeddedCluster


@pytest.fixture(scope="session")
def stacks(run_dir: Path, model_dir: Path) -> Iterator[Stacks]:
    """Commands on a migrated instance. It is held here, so that no command has to start it."""
    data_dir = run_dir / "cli"
    with EmbeddedCluster(data_dir):
        run = Stacks(data_dir, model_dir)
        assert run("migrate", "--json").json == {"status": "ok"}
        yield run


@pytest.fixture(scope="session")
def shelf(stacks: Stacks, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A collection of `olga`'s with one published document; its slug."""
    file = tmp_path_factory.mktemp("shelf") / "forklifts.txt"
    file.write_text("Forklifts are parked at the north gate of the warehouse before the night shift begins.\n")
    stacks("collection", "create", "shelf", "--title", "A shelf", "--owner", "olga")
    stacks("document", "add", "shelf", file)
    stacks("publish", "shelf")
    return "shelf"
