"""What may be kept of a compiled scope, and what not."""

from support.world import OWNER, World, local

from app.authz import grants
from app.authz.grants import NewGrant
from app.db.session import Transaction
from app.domain.access import Action


async def test_rules_that_were_never_committed_leave_nothing_behind(world: World) -> None:
    await world.collection("handbook")
    services = world.services
    wanted = NewGrant(action="search", collection="handbook", principal="eve")

    async def tried(transaction: Transaction) -> bool:
        await grants.grant(transaction, services.authority, services.printer, OWNER, wanted)
        scope = await services.authority.compile(transaction, local("eve"), Action.SEARCH)
        return "handbook" in scope.collections

    assert await services.database.rehearse(tried), "within the rehearsal the rule holds"
    scope = await services.database.read(
        lambda snapshot: services.authority.compile(snapshot, local("eve"), Action.SEARCH)
    )
    assert "handbook" not in scope.collections, "a scope of a rehearsal was kept"


async def test_a_scope_is_kept_while_its_rules_stand(world: World) -> None:
    await world.collection("handbook")
    services = world.services

    async def compiled() -> object:
        return await services.database.read(lambda snapshot: services.authority.compile(snapshot, OWNER, Action.SEARCH))

    first = await compiled()
    assert await compiled() is first
    await world.grant("search", "handbook", principal="somebody-else")
    assert await compiled() is not first, "any rule's change ends it"
