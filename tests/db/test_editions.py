"""Editions: turned over whole, gone back to, and a history that nobody rewrites."""

import asyncio
from uuid import UUID

import psycopg
import pytest
from support.postgres import RunDatabase
from support.whole import assert_whole
from support.world import OWNER, World, local

from app.errors import Conflict, NotFound
from app.ingest import editions
from app.ingest.editions import DocumentChange, Span

HISTORY = """
    SELECT d.source_id, p.version, p.live_from, p.live_until
    FROM publications p JOIN documents d ON d.id = p.document_id ORDER BY 1, 3
"""
_FIRST = UUID(int=0)
OLD, NEW = "The kettle is in the cellar.", "The kettle is in the attic."


def _history(database: RunDatabase) -> list[tuple[object, ...]]:
    with database.superuser() as connection:
        return connection.execute(HISTORY).fetchall()


async def _texts(world: World, query: str = "where is the kettle") -> set[str]:
    found = await world.search(OWNER, query, "house", limit=50)
    return {fragment.text for fragment in found.fragments}


async def _three_editions(world: World) -> None:
    """@1: kettle 1, ladder. @2: kettle 2, ladder, broom. @3: kettle 2, broom."""
    await world.collection("house")
    await world.add("house", "kettle", OLD)
    ladder = await world.add("house", "ladder", "The ladder and the kettle stand behind the boiler.")
    await world.publish("house")
    await world.add("house", "kettle", NEW)
    await world.add("house", "broom", "The broom hangs beside the kettle.")
    await world.publish("house")
    await world.remove(ladder)
    await world.publish("house")


async def test_a_rollback_publishes_an_earlier_state_and_rewrites_nothing(
    world: World, postgres_database: RunDatabase
) -> None:
    await _three_editions(world)
    before = _history(postgres_database)
    done = await world.rollback("house", 1)

    assert (done.corpus_version, done.documents, done.dedup_hit) == ("house@4", 3, False)
    assert await _texts(world) == {OLD, "The ladder and the kettle stand behind the boiler."}
    after = _history(postgres_database)
    assert set(before) - set(after) == {("kettle", 2, 2, None), ("broom", 1, 2, None)}
    assert set(after) - set(before) == {
        ("kettle", 2, 2, 4),
        ("broom", 1, 2, 4),
        ("kettle", 1, 4, None),
        ("ladder", 1, 4, None),
    }
    assert (await world.publish("house")).dedup_hit  # what came back is not taken out again
    forth = await world.rollback("house", 3)
    assert forth.corpus_version == "house@5"
    assert await _texts(world) == {NEW, "The broom hangs beside the kettle."}
    assert_whole(postgres_database)


async def test_a_rollback_to_what_is_there_keeps_the_edition(world: World) -> None:
    await _three_editions(world)
    assert (await world.rollback("house", 3)).dedup_hit
    await world.rollback("house", 1)
    again = await world.rollback("house", 1)
    assert (again.corpus_version, again.documents, again.dedup_hit) == ("house@4", 0, True)
    for edition in (0, 5, -1):
        with pytest.raises(NotFound):
            await world.rollback("house", edition)


async def test_what_waits_for_the_next_publish_waits_on(world: World, postgres_database: RunDatabase) -> None:
    await _three_editions(world)
    await world.add("house", "kettle", "The kettle is on the roof, a draft says.")
    await world.add("house", "bucket", "The bucket is new, and near the kettle.")
    broom = await world.add("house", "broom", "The broom hangs beside the kettle.")  # the same bytes: no news
    await world.remove(broom)

    await world.rollback("house", 2)
    assert NEW in await _texts(world)
    assert "The broom hangs beside the kettle." in await _texts(world)
    published = await world.publish("house")
    assert (published.corpus_version, published.documents) == ("house@5", 3)
    assert await _texts(world) == {
        "The kettle is on the roof, a draft says.",
        "The bucket is new, and near the kettle.",
        "The ladder and the kettle stand behind the boiler.",
    }
    assert_whole(postgres_database)


async def test_bytes_that_were_rolled_back_can_be_uploaded_again(world: World) -> None:
    await _three_editions(world)
    await world.rollback("house", 1)
    assert (await world.upload("house", "kettle", OLD)).dedup_hit
    again = await world.upload("house", "kettle", NEW)
    assert not again.dedup_hit
    await world.services.worker.run_one(again.job_id)
    await world.publish("house")
    assert NEW in await _texts(world)


async def test_a_rollback_and_a_publish_at_once_make_two_editions(world: World, postgres_database: RunDatabase) -> None:
    await _three_editions(world)
    await world.add("house", "bucket", "The bucket is new, and near the kettle.")
    done = await asyncio.gather(world.rollback("house", 1), world.publish("house"))
    assert {one.corpus_version for one in done} == {"house@4", "house@5"}
    assert_whole(postgres_database)


async def test_a_search_beside_a_publish_sees_one_edition_whole(world: World) -> None:
    await world.collection("house")
    for year in (2025, 2026):
        for room in range(5):
            await world.add("house", f"room-{room}", f"Where the kettle of room {room} is, as of {year}.")
        if year == 2025:
            await world.publish("house")
    question = "where is the kettle of the room"
    publishing = asyncio.ensure_future(world.publish("house"))
    answers = await asyncio.gather(*(world.search(OWNER, question, limit=50) for _ in range(9)))
    await publishing
    answers.append(await world.search(OWNER, question, limit=50))
    for answer in answers:
        year = {"house@1": 2025, "house@2": 2026}[answer.corpus_versions[0]]
        assert {one.text for one in answer.fragments} == {
            f"Where the kettle of room {room} is, as of {year}." for room in range(5)
        }
    assert answers[-1].corpus_versions == ("house@2",)


async def test_the_rest_of_a_collection_stays_as_it_is_for_who_may_publish_a_part(world: World) -> None:
    await world.collection("house")
    await world.add("house", "open", "The open kettle, first.")
    await world.add("house", "shut", "The shut kettle, first.", labels=("closed",))
    await world.publish("house")
    await world.add("house", "open", "The open kettle, second.")
    await world.add("house", "shut", "The shut kettle, second.")
    await world.publish("house")
    await world.grant("publish", "house", principal="clerk")
    await world.grant("publish", "house", principal="clerk", label="closed", effect="deny")

    assert (await world.rollback("house", 1, local("clerk"))).documents == 1
    assert await _texts(world, "kettle") == {"The open kettle, first.", "The shut kettle, second."}


async def test_a_rollback_to_what_was_purged_is_refused_and_names_only_what_is_seen(world: World) -> None:
    await _three_editions(world)
    await world.appoint("house", "peter")
    documents = {one.title: one.document_id for one in await _diff(world, 0, 1)}
    asked = await world.ask_purge("house", documents["kettle"], 1)
    await world.confirm_purge("house", asked.id, local("peter"))
    with pytest.raises(Conflict) as refused:
        await world.rollback("house", 1)
    assert refused.value.details == {"document_ids": [str(documents["kettle"])]}
    assert (await world.rollback("house", 2)).documents == 1


async def _diff(world: World, old: int, new: int, who: str = "owner") -> list[DocumentChange]:
    services = world.services
    return await services.database.read(
        lambda snapshot: editions.diff(
            snapshot,
            services.authority,
            services.printer,
            local(who),
            "house",
            Span(old, new),
            after=_FIRST,
            limit=200,
        )
    )


async def test_a_diff_lists_what_was_added_changed_and_removed(world: World) -> None:
    await _three_editions(world)
    assert {(one.title, one.change, one.from_version, one.to_version) for one in await _diff(world, 1, 3)} == {
        ("kettle", "changed", 1, 2),
        ("broom", "added", None, 1),
        ("ladder", "removed", 1, None),
    }
    assert {(one.title, one.change) for one in await _diff(world, 3, 1)} == {
        ("kettle", "changed"),
        ("broom", "removed"),
        ("ladder", "added"),
    }
    assert await _diff(world, 2, 2) == []
    await world.rollback("house", 1)
    assert await _diff(world, 1, 4) == []
    with pytest.raises(NotFound):
        await _diff(world, 1, 5)


async def test_hidden_documents_are_in_no_list(world: World) -> None:
    await world.collection("house")
    await world.add("house", "shut", "The shut kettle.", labels=("closed",))
    await world.publish("house")
    await world.add("house", "open", "The open kettle.")
    await world.publish("house")
    await world.grant("search", "house", principal="guest")
    await world.grant("search", "house", principal="guest", label="closed", effect="deny")
    services = world.services

    async def counted(who: str) -> list[int]:
        cards = await services.database.read(
            lambda snapshot: editions.listed(
                snapshot, services.authority, services.printer, local(who), "house", before=9, limit=9
            )
        )
        return [card.documents for card in cards]

    assert await counted("owner") == [1, 1]
    assert await counted("guest") == [1, 0]
    assert [one.title for one in await _diff(world, 0, 2, "guest")] == ["open"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE publications SET live_until = 9",
        "DELETE FROM publications",
        "INSERT INTO publications SELECT * FROM publications",
    ],
)
async def test_the_service_cannot_touch_the_history(postgres_database: RunDatabase, statement: str) -> None:
    with postgres_database.service() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


@pytest.mark.parametrize(
    "change",
    [
        "published_from = NULL, published_until = NULL",
        "published_until = NULL",
        "published_until = 9",
        "published_from = 2, published_until = 3",
    ],
)
async def test_no_update_rewrites_what_was_live(world: World, postgres_database: RunDatabase, change: str) -> None:
    """Kettle 1 was live in edition 1 alone, until 2."""
    await _three_editions(world)
    statement = f"UPDATE document_versions SET {change} WHERE published_until = 2"
    before = _history(postgres_database)
    with postgres_database.superuser() as connection, pytest.raises(psycopg.errors.IntegrityError):
        connection.execute(statement.encode())
    assert _history(postgres_database) == before


async def test_a_superseded_version_says_so_and_stays_readable_until_its_document_goes(world: World) -> None:
    await _three_editions(world)
    documents = {one.title: one.document_id for one in await _diff(world, 0, 2)}
    services = world.services

    async def read(title: str, version: int) -> bool:
        document = documents[title]
        found = await services.database.read(lambda snapshot: services.reader.text(snapshot, OWNER, document, version))
        return found.card.superseded

    assert await read("kettle", 1)
    assert not await read("kettle", 2)
    await world.rollback("house", 1)
    assert not await read("kettle", 1)
    assert await read("kettle", 2)
    assert not await read("ladder", 1)
    with pytest.raises(NotFound):
        await read("broom", 1)
