"""Publishing may take longer than a call may otherwise."""

import pytest
from sqlalchemy import text
from support.postgres import RunDatabase
from support.world import OWNER, World

from app.db.engine import create_engine
from app.db.session import Database, Transaction
from app.domain.calls import Call, Entrypoint
from app.errors import StacksError


async def _slow(transaction: Transaction) -> str:
    await transaction.connection.execute(text("SELECT pg_sleep(0.6)"))
    return "done"


async def test_a_change_with_a_deadline_of_its_own_outlasts_the_usual_one(
    world: World, postgres_database: RunDatabase
) -> None:
    services = world.services
    engine = create_engine(postgres_database.service_url, statement_timeout_ms=200)
    database = Database(engine, check_tickets=services.printer.check, deadline_seconds=0.3)
    try:
        with pytest.raises(StacksError):
            await database.write(_slow)
        assert await database.write(_slow, deadline=30) == "done"
        row = await database.read(lambda snapshot: snapshot.connection.execute(text("SHOW statement_timeout")))
        assert row.scalar_one() == "200ms", "the patience of one transaction is not the next one's"
    finally:
        await database.close()
    assert await services.calls.change(Call(Entrypoint.CLI, "slow", OWNER), _slow, deadline=30) == "done"
