"""The editions of a collection: listed, compared, gone back to; and versions purged by two people."""

from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, delete, get, post
from litestar.params import Parameter

from app.db.session import Transaction
from app.domain.calls import Call
from app.domain.principal import Principal
from app.entrypoints.http.caller import named
from app.entrypoints.http.fields import Line
from app.entrypoints.http.paging import LIMIT_DEFAULT, NO_UUID, Page, after, limit_of, page
from app.entrypoints.services import Services
from app.ingest import editions, purge, rollback
from app.ingest.editions import NEWEST, DocumentChange, EditionCard, Span
from app.ingest.publish import DEADLINE_SECONDS
from app.ingest.purge import NewPurge, PurgeCard
from app.ingest.turnover import Publication

Edition = Annotated[int, Parameter(ge=1, le=NEWEST)]
Against = Annotated[int | None, Parameter(ge=0, le=NEWEST)]


class RollbackOrder(msgspec.Struct, forbid_unknown_fields=True):
    """The edition whose state is wanted back: `slug@N`, or N."""

    corpus_version: int | str


class PurgeBody(msgspec.Struct, forbid_unknown_fields=True):
    """A version to be purged, and why; the reason is kept."""

    document_id: UUID
    version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    reason: Line


class EditionController(Controller):
    """Editions."""

    path = "/api/v1/collections/{slug:str}"

    @get("/versions")
    async def listed(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        slug: str,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[EditionCard]:
        """The editions, newest first, with how many documents changed of those that the caller may see."""
        call.collection = named(slug)
        before = after(cursor, int, NEWEST)
        found = await services.calls.read(
            call,
            lambda snapshot: editions.listed(
                snapshot, services.authority, services.printer, caller, slug, before=before, limit=limit_of(limit) + 1
            ),
        )
        return page(found, limit, lambda card: card.number)

    @get("/versions/{number:int}/diff")
    async def diff(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        slug: str,
        number: Edition,
        against: Against = None,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[DocumentChange]:
        """What an edition holds otherwise than another (by default the one before), of what the caller may see."""
        call.collection = named(slug)
        span = Span(number - 1 if against is None else against, number)
        start = after(cursor, UUID, NO_UUID)
        found = await services.calls.read(
            call,
            lambda snapshot: editions.diff(
                snapshot,
                services.authority,
                services.printer,
                caller,
                slug,
                span,
                after=start,
                limit=limit_of(limit) + 1,
            ),
        )
        return page(found, limit, lambda change: change.document_id)

    @post("/rollback", status_code=200)
    async def rollback(
        self, services: Services, caller: Principal, call: Call, slug: str, data: RollbackOrder
    ) -> Publication:
        """Publish the state of an earlier edition as a new one. Drafts stay drafts."""
        call.collection = named(slug)
        number = editions.edition_number(slug, data.corpus_version)
        return await services.calls.change(
            call,
            lambda transaction: rollback.rollback(
                transaction, services.authority, services.printer, caller, slug, number
            ),
            deadline=DEADLINE_SECONDS,
        )


class PurgeController(Controller):
    """Purges: one asks, another confirms."""

    path = "/api/v1/collections/{slug:str}/purges"

    @get()
    async def listed(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        slug: str,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[PurgeCard]:
        """The purges of documents that the caller may purge."""
        call.collection = named(slug)
        start = after(cursor, UUID, NO_UUID)
        found = await services.calls.read(
            call,
            lambda snapshot: purge.listed(
                snapshot, services.authority, services.printer, caller, slug, after=start, limit=limit_of(limit) + 1
            ),
        )
        return page(found, limit, lambda card: card.id)

    @post()
    async def request(self, services: Services, caller: Principal, call: Call, slug: str, data: PurgeBody) -> PurgeCard:
        """Ask for a version that is not live to be purged."""
        call.collection, call.document_ids = named(slug), (data.document_id,)
        wanted = NewPurge(data.document_id, data.version, data.reason)
        return await services.calls.change(
            call,
            lambda transaction: purge.request(transaction, services.authority, services.printer, caller, slug, wanted),
        )

    @post("/{purge_id:uuid}/confirm", status_code=200)
    async def confirm(self, services: Services, caller: Principal, call: Call, slug: str, purge_id: UUID) -> PurgeCard:
        """Carry out what somebody else asked for, as the collection's purge confirmer."""
        call.collection = named(slug)

        async def confirmed(transaction: Transaction) -> PurgeCard:
            card = await purge.confirm(transaction, services.authority, services.printer, caller, slug, purge_id)
            call.document_ids = (card.document_id,)
            return card

        return await services.calls.change(call, confirmed, deadline=purge.DEADLINE_SECONDS)

    @delete("/{purge_id:uuid}", status_code=200)
    async def withdraw(self, services: Services, caller: Principal, call: Call, slug: str, purge_id: UUID) -> PurgeCard:
        """Drop a purge that is not confirmed yet."""
        call.collection = named(slug)

        async def withdrawn(transaction: Transaction) -> PurgeCard:
            card = await purge.withdraw(transaction, services.authority, services.printer, caller, slug, purge_id)
            call.document_ids = (card.document_id,)
            return card

        return await services.calls.change(call, withdrawn)
