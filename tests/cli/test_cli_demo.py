"""`stacks demo`: its loading may be killed at any point; what people changed afterwards is left alone."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from cli.commands import Stacks
from support.server import ServerProcess
from support.waiting import until

from app.db.embedded import SUPERUSER, EmbeddedCluster
from app.db.secrets import secret

Database = psycopg.Connection[tuple[int]]


class Demo:
    """One demo: the server, and commands on the same data directory."""

    def __init__(self, server: ServerProcess, model_dir: Path) -> None:
        self.server = server
        self.stacks = Stacks(server.data_dir, model_dir)
        self.stacks.environment["STACKS_PORT"] = str(server.port)

    def die_when(self, moment: str, came: Callable[[Database], bool]) -> None:
        """Start the demo, and kill it as soon as `came`."""
        with EmbeddedCluster(self.stacks.data_dir) as address, self.server.log.open("ab") as log:
            process = self.stacks.begin("demo", stderr=log.fileno())
            url = address.url(SUPERUSER, secret(self.stacks.data_dir, "superuser")).replace("+psycopg", "")

            def there() -> bool:
                assert process.poll() is None, f"the demo ended: {self.server.log.read_text()[-3000:]}"
                return came(database)

            try:
                with psycopg.connect(url, autocommit=True) as database:
                    until(there, moment)
            finally:
                process.kill()
                process.wait()


def count(query: str) -> Callable[[Database], int]:
    """A number from the database; 0 while there are no tables."""

    def counted(database: Database) -> int:
        try:
            row = database.execute(query.encode()).fetchone()
        except psycopg.errors.UndefinedTable:
            return 0
        return 0 if row is None else row[0]

    return counted


collections = count("SELECT count(*) FROM collections")
drafts = count("SELECT count(*) FROM document_versions WHERE state = 'draft'")
again = count("SELECT count(*) FROM document_versions WHERE version = 2")


@pytest.fixture(scope="module")
def demo(run_dir: Path, model_dir: Path) -> Iterator[Demo]:
    """A demo whose loading was killed three times, started a fourth."""
    killed = Demo(ServerProcess(run_dir / "killed", model_dir), model_dir)
    killed.die_when("a collection", lambda database: collections(database) >= 1)
    killed.die_when("two drafts", lambda database: drafts(database) >= 2)
    killed.die_when("a second version", lambda database: again(database) >= 1)
    with killed.server:
        yield killed


@pytest.mark.slow
def test_a_demo_killed_while_loading_passes_acceptance_afterwards(demo: Demo, tmp_path: Path) -> None:
    assert demo.stacks("accept", "--out", tmp_path / "report", "--json").json["status"] == "passed"
    assert (tmp_path / "report").is_dir()


@pytest.mark.slow
def test_acceptance_that_cannot_run_says_so(demo: Demo, tmp_path: Path) -> None:
    told = demo.stacks(
        "accept", "--credentials", tmp_path / "none.json", "--out", tmp_path / "report", "--json", code=2
    )
    assert told.json["status"] == "unusable"


@pytest.mark.slow
def test_a_start_renews_dead_tokens_and_changes_nothing_else(demo: Demo) -> None:
    before, owner = demo.server.tokens, demo.server.tokens["owner"]
    rule = demo.stacks("grants", "--collection", "board", "--json").json[-1]
    demo.stacks("revoke", rule["id"])
    demo.stacks("token", "revoke", before["general"].split("_")[1])
    editions = demo.stacks("collection", "list", "--json", token=owner).json
    demo.server.stop()
    demo.server.start()

    after = demo.server.tokens
    assert after["general"] != before["general"]
    assert {name: token for name, token in after.items() if name != "general"} == {
        name: token for name, token in before.items() if name != "general"
    }
    assert demo.stacks("search", "How are travel costs paid back?", "--json", token=after["general"]).json["results"]
    assert rule["id"] not in {one["id"] for one in demo.stacks("grants", "--json").json}
    assert demo.stacks("collection", "list", "--json", token=owner).json == editions
    place = demo.server.data_dir / "demo" / "credentials.json"
    assert place.stat().st_mode & 0o777 == 0o600
    assert json.loads(place.read_text())["mcp_url"] == demo.server.mcp_url


@pytest.mark.slow
def test_a_demo_ends_by_sigterm_as_by_ctrl_c(demo: Demo) -> None:
    demo.server.stop(signal.SIGTERM)
