"""A rule that changes between the begin of a transaction, which sets its clock, and its snapshot."""

import pytest
from sqlalchemy import text
from support.postgres import RunDatabase
from support.world import World, local

from app.db.engine import create_engine
from app.db.session import Transaction
from app.domain.access import Action
from app.errors import Denied

QUESTION = "When is lunch served in the canteen?"
CANTEEN = "The canteen opens at half past seven. Lunch is served from noon until two in the afternoon."
STATE = text("""
    SELECT version, now() AS at, extract(epoch FROM now())::text AS epoch, pg_backend_pid() AS backend FROM policy_state
""")


@pytest.mark.parametrize("change", ["revoke", "deny"])
async def test_what_the_clock_is_too_early_for_is_not_kept(
    world: World, postgres_database: RunDatabase, change: str
) -> None:
    await world.collection("handbook")
    await world.add("handbook", "canteen.txt", CANTEEN)
    await world.publish("handbook")
    grant = await world.grant("search", "handbook", principal="general")
    assert (await world.search(local("general"), QUESTION)).fragments
    engine = create_engine(postgres_database.service_url)
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        async with connection.begin():
            await connection.exec_driver_sql("SET LOCAL application_name = 'early'")  # begins, and reads nothing yet
            if change == "revoke":
                await world.revoke(grant.id)
            else:
                await world.grant("search", "handbook", principal="general", effect="deny")
            row = (await connection.execute(STATE)).one()
            early = Transaction(connection, row.version, row.at, row.epoch, row.backend, snapshot=True)
            await world.services.authority.compile(early, local("general"), Action.SEARCH)
    await engine.dispose()
    with pytest.raises(Denied):
        await world.search(local("general"), QUESTION)
