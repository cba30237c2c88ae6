"""A document's labels and rules of its own: each change moves it to the class they make, with the change, and none of
its own rules is ever left behind.
"""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import pytest
from support.postgres import RunDatabase
from support.world import OWNER, World, local

from app.authz import explain
from app.authz.explain import Target
from app.authz.rules import Subject
from app.domain.access import Action
from app.errors import Denied, StacksError

TEXT = "Lunch is served from noon until two in the afternoon."
QUERY = "When is lunch served?"


@pytest.fixture
async def document(world: World) -> UUID:
    """A published document of `owner` that `reader` may search with the rest of its collection."""
    await world.collection("handbook")
    await world.grant("search", "handbook", principal="reader")
    id_ = await world.add("handbook", "canteen.txt", TEXT, labels=("plain",))
    await world.publish("handbook")
    return id_


async def _finds(world: World, who: str = "reader") -> bool:
    try:
        return bool((await world.search(local(who), QUERY)).fragments)
    except Denied:
        return False


async def _relabel(world: World, *labels: str) -> None:
    await world.upload("handbook", "canteen.txt", f"{TEXT} Of the {labels}.", labels=labels)


def _class_of(database: RunDatabase, document: UUID) -> tuple[object, ...]:
    """Labels and own document of its class; the class that its texts, chunks and index rows are in must be the same."""
    with database.superuser() as connection:
        rows = connection.execute(
            """
            SELECT DISTINCT a.labels, a.document_id FROM access_classes a JOIN (
                SELECT class_id FROM documents WHERE id = %(id)s
                UNION SELECT class_id FROM document_versions WHERE document_id = %(id)s
                UNION SELECT class_id FROM originals WHERE document_id = %(id)s
                UNION SELECT class_id FROM document_texts WHERE document_id = %(id)s
                UNION SELECT class_id FROM chunks WHERE document_id = %(id)s
                UNION SELECT class_id FROM chunk_index WHERE document_id = %(id)s
            ) used ON used.class_id = a.id
            """,
            {"id": document},
        ).fetchall()
    assert len(rows) == 1, rows
    return tuple(rows[0])


async def test_new_labels_count_from_the_same_call_on(
    world: World, document: UUID, postgres_database: RunDatabase
) -> None:
    await world.grant("search", "handbook", principal="reader", effect="deny", label="sealed")
    assert await _finds(world)
    await _relabel(world, "sealed")
    assert not await _finds(world)
    assert _class_of(postgres_database, document) == (["sealed"], None)
    await _relabel(world, "plain")
    assert await _finds(world)


async def test_a_rule_of_its_own_sets_a_document_apart_and_no_other(
    world: World, document: UUID, postgres_database: RunDatabase
) -> None:
    other = await world.add("handbook", "other.txt", "Dinner is served from six.", labels=("plain",))
    await world.grant("search", "handbook", principal="reader", effect="deny", document=document)
    assert not await _finds(world)
    assert _class_of(postgres_database, document) == (["plain"], document)
    assert _class_of(postgres_database, other) == (["plain"], None)


async def test_a_deny_of_its_own_outlasts_new_labels(
    world: World, document: UUID, postgres_database: RunDatabase
) -> None:
    await world.grant("search", "handbook", principal="reader", effect="deny", document=document)
    assert not await _finds(world)
    for labels in (("open",), ("open", "wide"), (), ("plain",)):
        await _relabel(world, *labels)
        assert not await _finds(world), labels
        assert _class_of(postgres_database, document) == (sorted(labels), document)


async def test_an_allow_of_its_own_outlasts_new_labels(world: World, document: UUID) -> None:
    await world.grant("search", "handbook", principal="guest", document=document)
    assert await _finds(world, "guest")
    await _relabel(world, "open")
    assert await _finds(world, "guest")
    await world.grant("search", "handbook", principal="guest", effect="deny", label="open")
    assert not await _finds(world, "guest")


async def test_what_was_so_before_new_labels_is_explained_by_the_labels_of_then(world: World, document: UUID) -> None:
    await world.grant("search", "handbook", principal="guest", document=document)
    await world.grant("search", "handbook", principal="guest", effect="deny", label="sealed")
    before = datetime.now(UTC)
    await _relabel(world, "sealed")

    async def allowed(at: datetime | None) -> bool:
        found = await world.services.database.read(
            lambda snapshot: explain.explain(
                snapshot,
                world.services.authority,
                OWNER,
                Subject("principal", "guest"),
                Action.SEARCH,
                Target(document=document),
                at,
            )
        )
        return found.allowed

    assert (await allowed(before), await allowed(None)) == (True, False)


@pytest.mark.parametrize("attempt", range(5))
async def test_new_labels_and_a_rule_of_its_own_at_once_lose_neither(
    world: World, document: UUID, postgres_database: RunDatabase, attempt: int
) -> None:
    relabel = _relabel(world, "open", f"wide-{attempt}")
    deny = world.grant("search", "handbook", principal="reader", effect="deny", document=document)
    both = (relabel, deny) if attempt % 2 else (deny, relabel)
    for ended in await asyncio.gather(*both, return_exceptions=True):
        assert not isinstance(ended, BaseException), ended
    assert not await _finds(world)
    assert _class_of(postgres_database, document) == (["open", f"wide-{attempt}"], document)


async def test_who_ingests_and_does_not_manage_changes_no_labels(
    world: World, document: UUID, postgres_database: RunDatabase
) -> None:
    for action in ("ingest", "search"):
        await world.grant(action, "handbook", principal="clerk")
    with pytest.raises(StacksError) as refused:
        await world.upload("handbook", "canteen.txt", "New.", by=local("clerk"), labels=())
    assert refused.value.code == "denied"
    assert _class_of(postgres_database, document) == (["plain"], None)
    await world.upload("handbook", "canteen.txt", "New.", by=local("clerk"), labels=("plain",))
    await world.upload("handbook", "canteen.txt", "Newer.", by=local("clerk"))
    assert _class_of(postgres_database, document) == (["plain"], None)
