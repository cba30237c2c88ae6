"""What a transaction without a good ticket gets from the five tables with text: no rows, and no error to learn from."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest
from support.postgres import TICKET_KEY, RunDatabase
from support.world import World, local

from app.db.session import Transaction
from app.domain.access import Action
from app.entrypoints.services import Services

PROTECTED = ("documents", "document_versions", "originals", "document_texts", "chunks")
Connection = psycopg.Connection[tuple[Any, ...]]
PARTY = {"principal": "owner", "groups": []}


def signed(payload: object, key: str = TICKET_KEY) -> str:
    """A ticket as the service makes them."""
    body = base64.b64encode(payload if isinstance(payload, bytes) else json.dumps(payload).encode())
    return f"{body.decode()}.{hmac.new(key.encode(), body, hashlib.sha256).hexdigest()}"


def claims(connection: Connection, action: str | None = "search", **changed: object) -> dict[str, object]:
    """What a good ticket would say in the transaction that `connection` is in."""
    row = connection.execute("SELECT pg_backend_pid(), extract(epoch FROM now())::text").fetchone()
    assert row is not None
    known = {"backend": row[0], "transaction": row[1], "expires": float(row[1]) + 60}
    return {"action": action, "parties": [PARTY], **known, **changed}


def counts(connection: Connection, ticket: str | None) -> dict[str, int]:
    """How many rows of each protected table the transaction sees with that ticket."""
    if ticket is not None:
        connection.execute("SELECT set_config('stacks.ticket', %s, true)", [ticket])
    found = {}
    for table in PROTECTED:
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert row is not None
        found[table] = row[0]
    return found


NOTHING = dict.fromkeys(PROTECTED, 0)


@pytest.fixture
async def filled(world: World, postgres_database: RunDatabase) -> AsyncIterator[Connection]:
    """The service's login, on a database with one published document of `owner`."""
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", "Lunch is served from noon until two in the afternoon.")
    await world.publish("handbook")
    with postgres_database.service() as connection:
        yield connection


async def test_no_ticket_no_rows(filled: Connection) -> None:
    assert counts(filled, None) == NOTHING
    for table in PROTECTED:
        assert filled.execute(f"SELECT * FROM {table}").fetchall() == []
    with filled.transaction():
        assert counts(filled, None) == NOTHING


async def test_a_good_ticket_shows_what_it_is_for(filled: Connection) -> None:
    with filled.transaction():
        shown = counts(filled, signed(claims(filled)))
    assert shown == {**dict.fromkeys(PROTECTED, 1), "originals": 0}
    assert counts(filled, None) == NOTHING, "it is gone with its transaction"


def _truncated(connection: Connection) -> str:
    return signed(claims(connection))[:-1]


def _half(connection: Connection) -> str:
    ticket = signed(claims(connection))
    return ticket[: len(ticket) // 2]


def _altered(connection: Connection) -> str:
    body, signature = signed(claims(connection, parties=[{**PARTY, "principal": "nobody"}])).split(".")
    return f"{base64.b64encode(base64.b64decode(body).replace(b'nobody', b'owner')).decode()}.{signature}"


def _garbage_signed(connection: Connection) -> str:
    body = "=A=!!"
    return f"{body}.{hmac.new(TICKET_KEY.encode(), body.encode(), hashlib.sha256).hexdigest()}"


FORGERIES: dict[str, Callable[[Connection], str]] = {
    "empty": lambda _: "",
    "one word": lambda _: "owner",
    "a dot": lambda _: ".",
    "not base64": lambda _: f"{'=' * 9}.{'0' * 64}",
    "not base64, signed": _garbage_signed,
    "no signature": lambda connection: signed(claims(connection)).split(".")[0],
    "truncated by one": _truncated,
    "truncated by half": _half,
    "signed with another key": lambda connection: signed(claims(connection), "another key"),
    "signed with no key": lambda connection: signed(claims(connection), ""),
    "of another payload": _altered,
    "expired": lambda connection: signed(claims(connection, expires=1)),
    "without an end": lambda connection: signed(claims(connection, expires=None)),
    "of another backend": lambda connection: signed(claims(connection, backend=1)),
    "of another transaction": lambda connection: signed(claims(connection, transaction="1.5")),
    "of nobody": lambda connection: signed(claims(connection, parties=[])),
    "of another principal": lambda connection: signed(claims(connection, parties=[{**PARTY, "principal": "general"}])),
    "of an intersection": lambda connection: signed(
        claims(connection, parties=[PARTY, {**PARTY, "principal": "general"}])
    ),
    "for another action": lambda connection: signed(claims(connection, action="audit")),
    "for no action": lambda connection: signed(claims(connection, action=None)),
    "narrowed elsewhere": lambda connection: signed(claims(connection, parties=[{**PARTY, "collections": []}])),
    "wrong types, another key": lambda _: signed({"backend": {}, "transaction": [], "parties": 7}, "another key"),
    "no object, another key": lambda _: signed(b"[1, 2", "another key"),
    "control characters": lambda connection: "\n" + signed(claims(connection)) + "\n",
}


async def test_a_bad_ticket_is_no_ticket(filled: Connection) -> None:
    shown = {}
    for name, forge in FORGERIES.items():
        with filled.transaction():
            shown[name] = counts(filled, forge(filled))
    assert {name: rows for name, rows in shown.items() if rows != NOTHING} == {}


async def test_a_ticket_does_not_outlive_its_transaction(filled: Connection, postgres_database: RunDatabase) -> None:
    with filled.transaction():
        ticket = signed(claims(filled))
        assert counts(filled, ticket) != NOTHING
        with postgres_database.service() as other, other.transaction():
            assert counts(other, ticket) == NOTHING
    with filled.transaction():
        assert counts(filled, ticket) == NOTHING
    filled.execute("SELECT set_config('stacks.ticket', %s, false)", [ticket])
    assert counts(filled, None) == NOTHING, "set for the whole session, it is still of another transaction"


async def test_the_service_cannot_read_or_make_the_key(filled: Connection) -> None:
    for statement in (
        "SELECT inner_pad FROM ticket_keys",
        "INSERT INTO ticket_keys VALUES (true, '', '')",
        "UPDATE ticket_keys SET inner_pad = outer_pad",
        "SELECT party_classes('{}', 'search')",
        "SET row_security = off; SELECT * FROM chunks",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            filled.execute(statement.encode())


async def test_nothing_is_left_in_a_pooled_connection(services: Services, filled: Connection) -> None:
    async def ticket(transaction: Transaction) -> object:
        query = "SELECT coalesce(current_setting('stacks.ticket', true), '')"
        return (await transaction.connection.exec_driver_sql(query)).scalar_one()

    async def present(transaction: Transaction) -> object:
        await services.printer.present(transaction, local("owner"), Action.SEARCH)
        return await ticket(transaction)

    assert await services.database.read(present) != ""
    assert await services.database.read(ticket) == ""
