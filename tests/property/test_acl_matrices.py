"""The access matrices of real organisations: for every user, the searchable documents are exactly the matrix's."""

import random

import pytest
from property.matrices import ACL, LARGE, SMALL, read, replayed
from support.postgres import RunCluster

SAMPLE = 200  # of the large one's users; tests/benchmarks/acl_matrices.py asks all


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_everybody_finds_what_the_matrix_says_and_nothing_else(
    name: str, postgres_cluster: RunCluster, postgres_template: str
) -> None:
    if not (ACL / name).is_dir():
        pytest.skip(f"the matrix {name} is not there; STACKS_SHARED_DATA names the folder that holds acl/{name}")
    matrix = read(name)
    users = matrix.users if name in SMALL else random.Random(20261130).sample(matrix.users, SAMPLE)
    with postgres_cluster.empty(template=postgres_template) as database:
        figures = replayed(database, matrix, users)
    print(figures)
    assert figures.wrong == []
    assert figures.pairs > 0
