"""One cluster and one model a run; a database of its own for each test that asks for one."""

import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.api import Api
from support.postgres import TICKET_KEY, RunCluster, RunDatabase
from support.provider import Provider
from support.server import ServerProcess
from support.world import World

from app import bootstrap
from app.analysis.embedder import Embedder
from app.config import Settings
from app.entrypoints.services import Services

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """Where the converted model is kept between runs."""
    return Path(os.environ.get("STACKS_MODEL_DIR") or ROOT / ".cache" / "models")


@pytest.fixture(scope="session")
def embedder(model_dir: Path) -> Embedder:
    """The bundled model."""
    return Embedder.load(model_dir)


@pytest.fixture(scope="session")
def run_dir() -> Iterator[Path]:
    """A directory that the account of the embedded server can walk through (pytest's own are closed to it)."""
    path = Path(tempfile.mkdtemp(prefix="stacks-run-")).resolve()
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_cluster(run_dir: Path) -> Iterator[RunCluster]:
    """The run's Postgres."""
    with RunCluster(run_dir / "data").running() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def postgres_template(postgres_cluster: RunCluster) -> Iterator[str]:
    """A migrated database to clone."""
    with postgres_cluster.template() as name:
        yield name


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """An identity provider that the demo server trusts."""
    with Provider().running() as provider:
        yield provider


@pytest.fixture(scope="session")
def demo_server(run_dir: Path, model_dir: Path, provider: Provider) -> Iterator[ServerProcess]:
    """The demo as people start it, for every test that only reads (or writes to collections of its own)."""
    chosen = {"STACKS_ISSUERS": json.dumps([{"issuer": provider.issuer}]), "STACKS_LOG_LEVEL": "debug"}
    with ServerProcess(run_dir / "demo", model_dir, environment=chosen) as server:
        yield server


@pytest.fixture(scope="session")
def api(demo_server: ServerProcess) -> Api:
    """REST on the demo, as any of its principals."""
    return Api(demo_server)


@pytest.fixture
def postgres_database(postgres_cluster: RunCluster, postgres_template: str) -> Iterator[RunDatabase]:
    """A migrated, empty database for one test."""
    with postgres_cluster.empty(template=postgres_template) as database:
        yield database


@pytest.fixture
async def services(postgres_database: RunDatabase, tmp_path: Path, embedder: Embedder) -> AsyncIterator[Services]:
    """The parts of one instance on a database of its own."""
    settings = Settings(data_dir=tmp_path / "data", ticket_key=TICKET_KEY)
    built = bootstrap.build(settings, postgres_database.service_url, embedder)
    await built.database.check_login()
    yield built
    await built.database.close()


@pytest.fixture
async def world(services: Services) -> World:
    """The parts, with built-in roles and an owner, to be filled."""
    return await World(services).begin()
