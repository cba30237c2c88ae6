"""A place that the account of the server can reach, and a new cluster in it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_case import new_cluster

from app.db.embedded import EmbeddedCluster, processes


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that other accounts can walk through (pytest's own are closed), also the temporary one."""
    tmp_path_factory.getbasetemp()  # settled before the temporary directory is another one for a while
    path = Path(tempfile.mkdtemp(prefix="stacks-")).resolve()
    path.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    monkeypatch.setenv("TMPDIR", str(path))
    yield path
    assert [home for home in path.rglob("postmaster.pid") if processes.servers_in(home.parent)] == []
    shutil.rmtree(path)


@pytest.fixture
def cluster(scratch: Path) -> EmbeddedCluster:
    return new_cluster(scratch)
