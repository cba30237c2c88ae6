"""A database and a world for a whole file: its servers are started once."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.postgres import TICKET_KEY, RunCluster, RunDatabase
from support.world import World

from app import bootstrap
from app.analysis.embedder import Embedder
from app.config import Settings

CANTEEN = "The canteen opens at half past seven. Lunch is served from noon until two in the afternoon."


@pytest.fixture(scope="module")
def shared_database(postgres_cluster: RunCluster, postgres_template: str) -> Iterator[RunDatabase]:
    """A migrated database for the tests of one file."""
    with postgres_cluster.empty(template=postgres_template) as database:
        yield database


@pytest.fixture(scope="module")
async def shared_world(
    shared_database: RunDatabase, tmp_path_factory: pytest.TempPathFactory, embedder: Embedder
) -> AsyncIterator[World]:
    """That database with one published document in the collection `handbook`."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("world"), ticket_key=TICKET_KEY, database_pool=3)
    built = bootstrap.build(settings, shared_database.service_url, embedder)
    world = await World(built).begin()
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", CANTEEN)
    await world.publish("handbook")
    yield world
    await built.database.close()


@pytest.fixture(scope="session")
def cluster_dir(run_dir: Path) -> Path:
    """The data directory of the run's Postgres."""
    return run_dir / "data"
