"""A reader whose clock stopped before a rule's change, but who sees the change: it must count, and not be kept wrong.

`now()` is when a transaction began, its snapshot is taken at its first statement; a change may be committed between.
"""

from collections.abc import Callable
from datetime import datetime

import pytest
from property.policies import CLASSES, COLLECTIONS, Given, Granted, On
from property.stage import Stage
from sqlalchemy import text

from app.authz.compile import Authority
from app.db.engine import create_engine
from app.db.session import Transaction
from app.domain.access import Action, Effect
from app.domain.principal import LOCAL_ISSUER, Principal

ANN = Principal(LOCAL_ISSUER, "ann")
SHELF = sorted(one.id for one in CLASSES if one.collection_id == COLLECTIONS["archive"])
BEGUN = text("SHOW server_version")  # begins the transaction, and with it its clock; takes no snapshot
STATE = text(
    "SELECT version, now() AS at, extract(epoch FROM now())::text AS epoch, pg_backend_pid() AS backend "
    "FROM policy_state"
)


def _rule(effect: Effect) -> Granted:
    return Granted(("principal", "ann"), frozenset({Action.SEARCH}), effect, On("collection", "archive"))


async def _late_reader(stage: Stage, authority: Authority, change: Callable[[], object]) -> tuple[set[int], set[int]]:
    """What `ann` may search, compiled and by row-level security, for a reader that `change` overtakes."""
    engine = create_engine(stage.service_url, pool_size=1)
    try:
        async with engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            async with connection.begin():
                await connection.execute(BEGUN)
                change()
                row = (await connection.execute(STATE)).one()
                late = Transaction(connection, row.version, row.at, row.epoch, row.backend, snapshot=True)
                scope = await authority.compile(late, ANN, Action.SEARCH)
                return set(scope.classes()), await stage.by_rows(late, ANN, Action.SEARCH)
    finally:
        await engine.dispose()


def _afterwards(stage: Stage, authority: Authority) -> list[int]:
    async def compiled(transaction: Transaction) -> list[int]:
        return (await authority.compile(transaction, ANN, Action.SEARCH)).classes()

    return stage.run(lambda: stage.database.read(compiled))


def test_a_revocation_that_overtakes_a_reader_counts_at_once(stage: Stage) -> None:
    stage.put(Given((), (_rule(Effect.ALLOW),)), datetime.now().astimezone())
    authority = Authority()

    def revoke() -> None:
        stage.behind.execute("UPDATE grants SET revoked_at = now(), revoked_by = 'test'")

    compiled, rows = stage.run(lambda: _late_reader(stage, authority, revoke))
    assert compiled == rows == set()
    assert _afterwards(stage, authority) == [], "the revoked grant was kept for everybody after"


def test_a_membership_that_ends_under_a_reader_counts_at_once(stage: Stage) -> None:
    in_role = Granted(("role", "staff"), frozenset({Action.SEARCH}), Effect.ALLOW, On("collection", "archive"))
    stage.put(Given((), (in_role,)), datetime.now().astimezone())
    stage.behind.execute(
        "INSERT INTO memberships (member_kind, member, container_kind, container, granted_by) "
        "VALUES ('principal', 'ann', 'role', 'staff', 'test')"
    )
    authority = Authority()

    def revoke() -> None:
        stage.behind.execute("UPDATE memberships SET revoked_at = now(), revoked_by = 'test'")

    compiled, rows = stage.run(lambda: _late_reader(stage, authority, revoke))
    assert compiled == rows == set()
    assert _afterwards(stage, authority) == []


@pytest.mark.parametrize("begins", ["now()", "now() - interval '1 day'"])
def test_a_deny_that_overtakes_a_reader_is_not_forgotten(stage: Stage, begins: str) -> None:
    stage.put(Given((), (_rule(Effect.ALLOW),)), datetime.now().astimezone())
    authority = Authority()

    def deny() -> None:
        stage.behind.execute(
            "INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, collection_id, granted_by, "
            f"valid_from) VALUES ('principal', 'ann', 'search', 'deny', 'collection', %s, 'test', {begins})",
            (COLLECTIONS["archive"],),
        )

    compiled, rows = stage.run(lambda: _late_reader(stage, authority, deny))
    assert compiled == rows
    assert _afterwards(stage, authority) == [], "the deny was kept out for everybody after"


def test_a_scope_of_a_later_clock_is_not_used_by_an_earlier_one(stage: Stage) -> None:
    """A rule that began between the two clocks holds for the later only."""
    stage.put(Given((), ()), datetime.now().astimezone())
    authority = Authority()

    def begin_and_compile() -> None:
        stage.behind.execute(
            "INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, collection_id, granted_by) "
            "VALUES ('principal', 'ann', 'search', 'allow', 'collection', %s, 'test')",
            (COLLECTIONS["archive"],),
        )

    async def overtaken() -> tuple[set[int], set[int]]:
        async def compiled(transaction: Transaction) -> list[int]:
            return (await authority.compile(transaction, ANN, Action.SEARCH)).classes()

        engine = create_engine(stage.service_url, pool_size=1)
        try:
            async with engine.connect() as connection, connection.begin():
                await connection.execute(BEGUN)
                begin_and_compile()
                assert await stage.database.read(compiled) == SHELF
                row = (await connection.execute(STATE)).one()
                late = Transaction(connection, row.version, row.at, row.epoch, row.backend, snapshot=True)
                return set(await compiled(late)), await stage.by_rows(late, ANN, Action.SEARCH)
        finally:
            await engine.dispose()

    compiled, rows = stage.run(overtaken)
    assert compiled == rows == set()
