"""No record, no text: what happens to calls while the log cannot take their rows, and to the rows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from support.postgres import RunDatabase
from support.waiting import until_async
from support.world import OWNER, World

from app.audit.spool import Spool
from app.domain.calls import Call, Entrypoint
from app.domain.principal import Principal
from app.entrypoints.mcp.tools import search_documents
from app.errors import Denied, InternalError, StacksError

QUESTION = "When is lunch served in the canteen?"
CANTEEN = "The canteen opens at half past seven. Lunch is served from noon until two in the afternoon."


@pytest.fixture
async def filled(world: World) -> World:
    """One published document of `owner`."""
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", CANTEEN)
    await world.publish("handbook")
    return world


@contextmanager
def unwritable_log(database: RunDatabase) -> Iterator[None]:
    """The log as a table that takes no rows."""
    with database.superuser() as connection:
        connection.execute("REVOKE INSERT ON calls FROM stacks_service")
        try:
            yield
        finally:
            connection.execute("GRANT INSERT ON calls TO stacks_service")


def outcomes(database: RunDatabase, operation: str) -> list[object]:
    """The outcomes that the log holds for an operation."""
    with database.superuser() as connection:
        rows = connection.execute("SELECT outcome FROM calls WHERE operation = %s ORDER BY sequence", [operation])
        return [outcome for (outcome,) in rows.fetchall()]


async def _wait_for(database: RunDatabase, operation: str, expected: list[object]) -> None:
    """Wait for as many rows, and compare."""

    async def there() -> bool:
        return len(outcomes(database, operation)) >= len(expected)

    await until_async(there, "the rows in the log")
    assert outcomes(database, operation) == expected


async def _owner() -> Principal:
    return OWNER


async def _failing(world: World, operation: str, error: type[StacksError]) -> None:
    """A call that fails with `error`."""

    async def fail() -> None:
        raise error

    await world.services.calls.serve(Call(Entrypoint.HTTP, operation, OWNER), fail)


async def test_no_fragment_without_a_row(filled: World, postgres_database: RunDatabase) -> None:
    services = filled.services
    with unwritable_log(postgres_database):
        result = await search_documents(services, Entrypoint.MCP, _owner, {"query": QUESTION})
    said = result.model_dump_json()
    assert result.is_error
    assert json.loads(said)["structured_content"]["status"] == "internal"
    for word in ("Lunch", "INSERT", "calls", "psycopg", "permission"):
        assert word not in said
    await search_documents(services, Entrypoint.MCP, _owner, {"query": QUESTION})
    await _wait_for(postgres_database, "search_documents", ["ok", "internal"])


async def test_no_fragment_when_the_disk_takes_no_row_either(
    filled: World, postgres_database: RunDatabase, tmp_path: Path
) -> None:
    spool = tmp_path / "data" / "audit"
    for file in spool.glob("*"):
        file.unlink()
    spool.rmdir()
    spool.write_text("in the way")
    with unwritable_log(postgres_database):
        result = await search_documents(filled.services, Entrypoint.MCP, _owner, {"query": QUESTION})
    said = result.model_dump_json()
    assert result.is_error
    assert json.loads(said)["structured_content"]["status"] == "internal"
    for word in ("Lunch", str(tmp_path), "Errno", "INSERT"):
        assert word not in said
    with pytest.raises(Denied):
        await filled.search(OWNER, QUESTION, "nowhere")
    assert (await filled.search(OWNER, QUESTION)).fragments[0].text == CANTEEN


async def test_a_denial_that_cannot_be_written_down_waits_as_a_denial(
    filled: World, postgres_database: RunDatabase
) -> None:
    with unwritable_log(postgres_database), pytest.raises(InternalError):
        await _failing(filled, "refused", Denied)
    await filled.search(OWNER, QUESTION)
    await _wait_for(postgres_database, "refused", ["denied"])


async def test_a_change_without_a_row_is_taken_back(filled: World, postgres_database: RunDatabase) -> None:
    with unwritable_log(postgres_database):
        with pytest.raises(InternalError):
            await filled.collection("archive")
        with pytest.raises(InternalError):
            await filled.grant("search", "handbook", principal="general")
    with postgres_database.superuser() as connection:
        assert connection.execute("SELECT slug FROM collections").fetchall() == [("handbook",)]
        assert connection.execute("SELECT FROM grants WHERE subject = 'general'").fetchall() == []


async def test_names_that_postgres_takes_in_no_text_are_written_down(
    world: World, postgres_database: RunDatabase
) -> None:
    call = Call(Entrypoint.HTTP, "odd names", OWNER, "a\x00b\ud800c")
    await world.services.calls.record(call)
    with postgres_database.superuser() as connection:
        row = connection.execute("SELECT collection FROM calls WHERE operation = 'odd names'").fetchone()
    assert row == ("a\\x00b\\ud800c",)


async def test_a_row_that_is_refused_does_not_hold_the_others_up(
    filled: World, postgres_database: RunDatabase, tmp_path: Path
) -> None:
    with unwritable_log(postgres_database), pytest.raises(InternalError):
        await _failing(filled, "first", Denied)
    place = tmp_path / "data" / "audit"
    spool = Spool(place / "spool.jsonl")
    row = json.loads((place / "spool.jsonl").read_text())
    spool.append({**row, "call_id": str(uuid4()), "outcome": None})
    spool.append({**row, "call_id": str(uuid4()), "operation": "last"})
    await filled.search(OWNER, QUESTION)
    await _wait_for(postgres_database, "last", ["denied"])
    assert outcomes(postgres_database, "first") == ["denied"]
    refused = [json.loads(line) for line in (place / "refused.jsonl").read_text().split("\n") if line]
    assert [one["outcome"] for one in refused] == [None]


def test_a_row_cut_short_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "spool.jsonl"
    spool = Spool(path)
    spool.append({"call_id": "first"})
    with path.open("ab") as file:
        file.write(b'\n{"call_id": "cut sh')
    spool.append({"call_id": "last"})
    (claimed,) = spool.claimed()
    assert [row["call_id"] for row in spool.rows(claimed)] == ["first", "last"]
