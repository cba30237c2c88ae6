"""One stage for all random policies: each example replaces the rules of the one before."""

from collections.abc import Iterator

import pytest
from property.stage import Stage, staged
from support.postgres import RunCluster


@pytest.fixture(scope="module")
def stage(postgres_cluster: RunCluster, postgres_template: str) -> Iterator[Stage]:
    """A furnished stage of the module's own."""
    with postgres_cluster.empty(template=postgres_template) as database, staged(database) as made:
        yield made
