"""Explanations, previews and who-can-search, against the search itself."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from support.world import OWNER, World, local

from app.authz import explain, preview
from app.authz.explain import Explanation, Target
from app.authz.grants import NewGrant
from app.authz.preview import Searcher
from app.authz.rules import Subject
from app.domain.access import Action
from app.errors import Denied, NotFound

AUDITOR = local("auditor")


async def _filled(world: World) -> tuple[UUID, UUID]:
    """A shared and a confidential document; staff through a group, the board as a role within."""
    await world.collection("handbook")
    shared = await world.add("handbook", "canteen.txt", "Lunch is served from noon until two.")
    closed = await world.add("handbook", "pay.txt", "Pay band seven begins at five thousand.", labels=("confidential",))
    await world.publish("handbook")
    await world.members("auditor", principals={AUDITOR.key})
    await world.members("board")
    await world.members("staff", principals={"anna"}, groups={"sales"}, roles={"board"})
    await world.grant("search", "handbook", role="staff", reason="everybody eats")
    await world.grant("search", "handbook", role="staff", effect="deny", label="confidential")
    return shared, closed


async def _explain(world: World, by: str, subject: Subject, document: UUID, at: datetime | None = None) -> Explanation:
    authority = world.services.authority
    return await world.services.database.read(
        lambda snapshot: explain.explain(
            snapshot, authority, local(by), subject, Action.SEARCH, Target(document=document), at
        )
    )


async def test_the_verdict_comes_with_every_rule_and_its_way(world: World) -> None:
    shared, closed = await _filled(world)
    anna = Subject("principal", "anna", ("sales",))
    found = await _explain(world, "owner", anna, shared)
    assert found.allowed
    assert [(one.effect, one.on, one.via, one.reason) for one in found.reasons] == [
        ("allow", "collection", ("principal:anna", "role:staff"), "everybody eats")
    ]
    refused = await _explain(world, "auditor", Subject("principal", "bob", ("sales",)), closed)
    assert not refused.allowed
    assert [(one.effect, one.on) for one in refused.reasons] == [
        ("deny", "label:confidential"),
        ("allow", "collection"),
    ]
    assert refused.reasons[0].via == ("principal:bob", "group:sales", "role:staff")


@pytest.mark.parametrize("asker", ["anna", "stranger"])
async def test_the_caller_itself_and_strangers_are_told_nothing(world: World, asker: str) -> None:
    shared, _ = await _filled(world)
    for document in (shared, uuid4()):
        with pytest.raises(NotFound):
            await _explain(world, asker, Subject("principal", asker), document)


async def test_the_past_is_explained_as_it_was(world: World) -> None:
    shared, _ = await _filled(world)
    grant = await world.grant("search", "handbook", principal="carl")
    between = datetime.now(UTC)
    await world.revoke(grant.id)
    carl = Subject("principal", "carl")
    assert (await _explain(world, "owner", carl, shared, between)).allowed
    assert not (await _explain(world, "owner", carl, shared)).allowed
    assert not (await _explain(world, "owner", carl, shared, grant.granted_at - timedelta(microseconds=1))).allowed


async def test_a_preview_is_what_a_search_would_find(world: World) -> None:
    shared, closed = await _filled(world)
    services = world.services

    async def seen(by: str, subject: Subject) -> list[tuple[UUID, str | None]]:
        found = await services.database.read(
            lambda snapshot: preview.preview(snapshot, services.authority, services.printer, local(by), subject)
        )
        return [(document.id, document.title) for document in found.documents]

    assert await seen("owner", Subject("role", "board")) == [(shared, "canteen")]
    assert sorted(await seen("owner", Subject("principal", "owner"))) == sorted([(shared, "canteen"), (closed, "pay")])
    assert await seen("auditor", Subject("role", "board")) == [(shared, None)], "auditors read no titles"
    with pytest.raises(Denied):
        await seen("anna", Subject("principal", "anna"))


async def test_a_proposal_changes_nothing_but_the_answer(world: World) -> None:
    _, closed = await _filled(world)
    services = world.services
    wanted = NewGrant(action="search", collection="handbook", principal="dora", document=closed)
    change = await services.database.rehearse(
        lambda transaction: preview.proposed(
            transaction, services.authority, services.printer, OWNER, Subject("principal", "dora"), wanted
        )
    )
    assert [document.id for document in change.gained] == [closed]
    assert change.lost == ()
    with pytest.raises(Denied):
        await world.search(local("dora"), "pay band seven")


async def test_who_can_search_lists_principals_groups_and_roles(world: World) -> None:
    shared, closed = await _filled(world)
    await world.grant("search", "handbook", principal="carl", label="confidential")

    async def who(document: UUID) -> list[Searcher]:
        return await world.services.database.read(
            lambda snapshot: preview.who(
                snapshot, world.services.authority, OWNER, Action.SEARCH, Target(document=document)
            )
        )

    assert await who(closed) == [Searcher("principal", "carl"), Searcher("principal", "owner")]
    assert await who(shared) == [
        Searcher("group", "sales"),
        Searcher("principal", "anna"),
        Searcher("principal", "owner"),
        Searcher("role", "board"),
        Searcher("role", "staff"),
    ]
