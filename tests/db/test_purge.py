"""Purges: two people, never one; and nothing is left, neither in answers nor in the files of the tables."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from uuid import UUID

import numpy as np
import psycopg
import pytest
from support.disk import Disk
from support.postgres import RunDatabase
from support.whole import assert_whole
from support.world import OWNER, World, local

from app.analysis.terms import document_terms
from app.db.erase import Erasure, erase
from app.domain.principal import Principal
from app.errors import Conflict, Denied, InvalidRequest, NotFound
from app.ingest import purge
from app.ingest.purge import NewPurge, PurgeCard

MARK = "qzvorblnaxite"
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
PETER = local("peter")


async def _house(world: World, first: str = "The kettle is in the cellar.") -> UUID:
    """A document with a superseded and a live version, and a purge confirmer, peter."""
    await world.collection("house")
    document = await world.add("house", "kettle", first)
    await world.publish("house")
    await world.add("house", "kettle", "The kettle is in the attic.")
    await world.publish("house")
    await world.appoint("house", PETER.key)
    return document


async def test_one_asks_and_another_confirms(world: World, postgres_database: RunDatabase) -> None:
    document = await _house(world)
    asked = await world.ask_purge("house", document, 1)
    assert (asked.status, asked.requested_by, asked.decided_by) == ("pending", "owner", None)
    with pytest.raises(Conflict):
        await world.ask_purge("house", document, 1)

    done = await world.confirm_purge("house", asked.id, PETER)
    assert (done.status, done.decided_by, done.erased_at) == ("purged", "peter", None)
    reader = world.services.reader
    for read in (reader.version, reader.text, reader.original):
        with pytest.raises(NotFound):
            await world.services.database.read(partial(read, by=OWNER, document=document, version=1))
    with pytest.raises(Conflict):
        await world.confirm_purge("house", asked.id, PETER)
    with pytest.raises(Conflict):
        await world.ask_purge("house", document, 1)
    with postgres_database.superuser() as connection:
        kept = connection.execute("SELECT version, state, length(content_sha256) FROM document_versions ORDER BY 1")
        assert kept.fetchall() == [(1, "purged", 64), (2, "published", 64)]
    assert_whole(postgres_database)
    assert {one.text for one in (await world.search(OWNER, "where is the kettle")).fragments} == {
        "The kettle is in the attic."
    }


def _agent(principal: Principal, name: str) -> Principal:
    return replace(principal, actor=local(name))


@pytest.mark.parametrize(
    ("asks", "confirms"),
    [
        (OWNER, OWNER),
        (OWNER, _agent(OWNER, "bot")),
        (OWNER, local("stranger")),
        (OWNER, local("clerk")),
        (OWNER, _agent(PETER, "bot")),
        (_agent(OWNER, "bot"), _agent(PETER, "bot")),
        (_agent(OWNER, "peter"), PETER),
    ],
)
async def test_nobody_else_confirms(
    world: World, postgres_database: RunDatabase, asks: Principal, confirms: Principal
) -> None:
    document = await _house(world)
    for name in ("clerk", "bot"):
        await world.grant("purge", "house", principal=name)
    try:
        asked = await world.ask_purge("house", document, 1, asks)
    except Conflict:
        assert "peter" in [party.key for party in asks.parties]
        return
    with pytest.raises((Denied, NotFound)):
        await world.confirm_purge("house", asked.id, confirms)
    with postgres_database.superuser() as connection:
        assert connection.execute("SELECT status FROM purges").fetchall() == [("pending",)]
        assert connection.execute("SELECT count(*) FROM originals").fetchall() == [(2,)]


async def test_who_asked_confirms_nothing_by_becoming_the_confirmer(world: World) -> None:
    document = await _house(world)
    asked = await world.ask_purge("house", document, 1)
    await world.appoint("house", OWNER.key, owner="heir")
    with pytest.raises(Denied):
        await world.confirm_purge("house", asked.id, OWNER)


async def test_the_database_itself_wants_two(world: World, postgres_database: RunDatabase) -> None:
    document = await _house(world)
    with postgres_database.superuser() as connection:
        with pytest.raises(psycopg.errors.RestrictViolation):
            connection.execute("UPDATE document_versions SET state = 'purged' WHERE version = 1")
        await world.ask_purge("house", document, 1)
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("""
                UPDATE purges SET status = 'purged', decided_by = 'owner', decided_at = now(),
                                  deleted_in = pg_current_xact_id()
            """)


async def test_what_is_live_cannot_be_purged(world: World) -> None:
    document = await _house(world)
    with pytest.raises(Conflict):
        await world.ask_purge("house", document, 2)
    for unknown in ((document, 3), (UUID(int=1), 1)):
        with pytest.raises(NotFound):
            await world.ask_purge("house", *unknown)
    asked = await world.ask_purge("house", document, 1)
    await world.rollback("house", 1)
    with pytest.raises(Conflict):
        await world.confirm_purge("house", asked.id, PETER)
    await world.rollback("house", 2)
    assert (await world.confirm_purge("house", asked.id, PETER)).status == "purged"


async def test_drafts_and_removed_versions_can_be_purged_and_the_bytes_come_again(
    world: World, postgres_database: RunDatabase
) -> None:
    document = await _house(world)
    await world.add("house", "kettle", "A draft about the kettle.")
    await world.remove(document)
    await world.publish("house")
    for version in (1, 2, 3):
        asked = await world.ask_purge("house", document, version)
        await world.confirm_purge("house", asked.id, PETER)
    again = await world.upload("house", "kettle", "The kettle is in the attic.")
    assert (again.document_id, again.dedup_hit) == (document, False)
    await world.services.worker.run_one(again.job_id)
    await world.publish("house")
    assert_whole(postgres_database)


async def test_what_could_not_be_read_can_be_purged(world: World, postgres_database: RunDatabase) -> None:
    document = await _house(world)
    await world.add("house", "kettle", "  \n ")
    with postgres_database.superuser() as connection:
        assert connection.execute("SELECT state FROM document_versions WHERE version = 3").fetchall() == [("failed",)]
        asked = await world.ask_purge("house", document, 3)
        await world.confirm_purge("house", asked.id, PETER)
        assert connection.execute("SELECT count(*) FROM originals WHERE version = 3").fetchone() == (0,)


async def test_a_purge_can_be_withdrawn_and_asked_for_again(world: World) -> None:
    document = await _house(world)
    services, parts = world.services, (world.services.authority, world.services.printer)
    asked = await world.ask_purge("house", document, 1)
    dropped = await world.change(lambda transaction: purge.withdraw(transaction, *parts, PETER, "house", asked.id))
    assert (dropped.status, dropped.decided_by) == ("withdrawn", "peter")
    with pytest.raises(Conflict):
        await world.confirm_purge("house", asked.id, PETER)
    await world.ask_purge("house", document, 1)

    async def listed(by: Principal) -> list[str]:
        cards: Sequence[PurgeCard] = await services.database.read(
            lambda snapshot: purge.listed(snapshot, *parts, by, "house", after=UUID(int=0), limit=9)
        )
        return sorted(card.status for card in cards)

    assert await listed(PETER) == ["pending", "withdrawn"]
    await world.grant("purge", "house", principal="peter", document=document, effect="deny")
    assert await listed(PETER) == []
    with pytest.raises(NotFound):
        await world.confirm_purge("house", asked.id, PETER)


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001])
async def test_a_purge_has_a_reason(world: World, reason: str) -> None:
    document = await _house(world)
    parts = (world.services.authority, world.services.printer)
    with pytest.raises(InvalidRequest):
        await world.change(
            lambda transaction: purge.request(transaction, *parts, OWNER, "house", NewPurge(document, 1, reason))
        )


@dataclass(frozen=True, slots=True)
class Traces:
    """Bytes that would give a version away: words of its text, a vector, the keys and the statistics of a term."""

    words: bytes
    later_words: bytes
    vector: bytes
    key: bytes
    statistics: bytes

    def all(self) -> dict[str, bytes]:
        return {name: getattr(self, name) for name in self.__slots__}


def _noise(words: int) -> str:
    """Words that nothing compresses, so that they lie in a file as they are written."""
    random = Random(7)
    return " ".join("".join(random.choices(LETTERS, k=16)) for _ in range(words))


def _traces(database: RunDatabase, noise: str) -> Traces:
    term = document_terms(MARK)[0]
    with database.superuser() as connection:
        found = connection.execute(
            "SELECT class_id, embedding::real[] FROM chunk_index WHERE %s = ANY(terms)", [term]
        ).fetchone()
    assert found is not None
    class_id, embedding = int(str(found[0])), np.array(found[1], dtype="<f2")
    return Traces(
        words=MARK.encode(),
        later_words=noise.split()[-3].encode(),
        vector=embedding.tobytes()[:64],
        key=struct.pack("<q", class_id << 32 | term),
        statistics=struct.pack("<ii", class_id, term),
    )


async def _marked(world: World) -> tuple[UUID, str]:
    noise = _noise(3000)
    document = await _house(world, f"# The {MARK}\n\nThe {MARK} is a kettle.\n\n{noise}\n")
    for name in ("pan", "pot", "cup"):
        await world.add("house", name, f"The {name} is not a kettle. {_noise(40)}")
    await world.publish("house")
    return document, noise


async def test_nothing_of_a_purged_version_is_left_in_the_files(world: World, postgres_database: RunDatabase) -> None:
    document, noise = await _marked(world)
    with postgres_database.superuser() as connection:
        connection.execute("ANALYZE")
    disk, traces = Disk(postgres_database), _traces(postgres_database, noise)
    assert all(disk.holding(trace) for trace in traces.all().values())

    asked = await world.ask_purge("house", document, 1)
    await world.confirm_purge("house", asked.id, PETER)
    assert erase(postgres_database.owner_url, bytes_max=1) == Erasure(0, 1, too_large=True)
    assert erase(postgres_database.owner_url) == Erasure(1, 0)
    assert {name: disk.holding(trace) for name, trace in traces.all().items()} == {name: set() for name in traces.all()}
    assert erase(postgres_database.owner_url) == Erasure(0, 0)
    assert {one.text for one in (await world.search(OWNER, "where is the kettle")).fragments}
    assert_whole(postgres_database)


async def test_a_purge_is_not_called_erased_while_an_older_snapshot_keeps_its_rows(
    world: World, postgres_database: RunDatabase
) -> None:
    document, _ = await _marked(world)
    asked = await world.ask_purge("house", document, 1)
    disk = Disk(postgres_database)
    with postgres_database.superuser() as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1 FROM editions")
        await world.confirm_purge("house", asked.id, PETER)
        assert erase(postgres_database.owner_url) == Erasure(0, 1)
        assert disk.holding(MARK.encode())
        old.execute("COMMIT")
        assert erase(postgres_database.owner_url) == Erasure(1, 0)
        assert not disk.holding(MARK.encode())
