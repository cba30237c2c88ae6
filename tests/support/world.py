"""A world to fill: collections, documents and rules made through the same services that the entrypoints use."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from app.authz import builtin, grants, roles
from app.authz.builtin import OPERATOR
from app.authz.grants import GrantCard, NewGrant
from app.authz.membership import Members
from app.db.session import Transaction
from app.domain.calls import Call, Entrypoint
from app.domain.principal import LOCAL_ISSUER, Principal
from app.domain.search import SearchAnswer
from app.entrypoints.services import Services
from app.errors import Conflict
from app.identity import tokens
from app.identity.tokens import NewToken
from app.ingest import collections, documents, publish, purge, rollback, store
from app.ingest.collections import Custodians, NewCollection
from app.ingest.purge import NewPurge, PurgeCard
from app.ingest.store import Receipt, Upload
from app.ingest.turnover import Publication

T = TypeVar("T")
OWNER = Principal(LOCAL_ISSUER, "owner")


def local(subject: str) -> Principal:
    """A principal of the local issuer."""
    return Principal(LOCAL_ISSUER, subject)


class World:
    """Each method does one thing as a user would, and returns what the user would see."""

    def __init__(self, services: Services) -> None:
        self.services = services

    async def begin(self) -> "World":
        """Built-in roles, and `owner` as a maker of collections."""
        await self.services.database.write(builtin.ensure)
        await self.members("collection-creator", principals={OWNER.key})
        return self

    async def change(self, work: Callable[[Transaction], Awaitable[T]], by: Principal = OWNER) -> T:
        return await self.services.calls.change(Call(Entrypoint.CLI, "test", by), work)

    async def members(self, role: str, **members: Iterable[str]) -> None:
        """Make the role if need be, and these its members."""
        wanted = Members(**{kind: frozenset(names) for kind, names in members.items()})
        authority = self.services.authority
        with suppress(Conflict):
            await self.change(lambda transaction: roles.create(transaction, authority, OPERATOR, role), OPERATOR)
        await self.change(
            lambda transaction: roles.set_members(transaction, authority, OPERATOR, role, wanted), OPERATOR
        )

    async def collection(self, slug: str, by: Principal = OWNER) -> None:
        """An empty collection owned by `by`."""
        services = self.services
        await self.change(
            lambda transaction: collections.create(
                transaction, services.authority, by, NewCollection(slug, slug.title()), services.owner_actions
            ),
            by,
        )

    async def grant(self, action: str, collection: str, by: Principal = OWNER, **rest: Any) -> GrantCard:
        """A rule; name `role` or `principal`, and what else `NewGrant` takes."""
        wanted = NewGrant(action=action, collection=collection, **rest)
        services = self.services
        return await self.change(
            lambda transaction: grants.grant(transaction, services.authority, services.printer, by, wanted), by
        )

    async def revoke(self, grant_id: UUID, by: Principal = OWNER) -> None:
        """End a rule."""
        await self.change(partial(grants.revoke, authority=self.services.authority, by=by, id_=grant_id), by)

    async def upload(
        self, collection: str, file_name: str, content: str | bytes, by: Principal = OWNER, **rest: Any
    ) -> Receipt:
        """Store a file; its job waits."""
        raw = content.encode() if isinstance(content, str) else content
        services = self.services
        return await self.change(
            lambda transaction: store.store(
                transaction,
                services.authority,
                services.printer,
                by,
                collection,
                Upload(file_name, raw, **rest),
                size_max=services.upload_max,
            ),
            by,
        )

    async def add(self, collection: str, file_name: str, content: str | bytes, **rest: Any) -> UUID:
        """Store a file and carry its job out; the document's id."""
        receipt = await self.upload(collection, file_name, content, **rest)
        await self.services.worker.run_one(receipt.job_id)
        return receipt.document_id

    async def publish(self, collection: str, by: Principal = OWNER) -> Publication:
        """Publish every draft."""
        services = self.services
        return await self.change(
            lambda transaction: publish.publish(transaction, services.authority, services.printer, by, collection), by
        )

    async def remove(self, document: UUID, by: Principal = OWNER) -> None:
        """Take a document out of the next edition."""
        printer = self.services.printer
        await self.change(lambda transaction: documents.remove(transaction, printer, by, document), by)

    async def rollback(self, collection: str, edition: int, by: Principal = OWNER) -> Publication:
        """Publish the state of an earlier edition."""
        parts = (self.services.authority, self.services.printer)
        return await self.change(
            lambda transaction: rollback.rollback(transaction, *parts, by, collection, edition), by
        )

    async def appoint(self, collection: str, confirmer: str, owner: str = OWNER.key, by: Principal = OWNER) -> None:
        """Name who owns a collection, and who confirms its purges."""
        services, wanted = self.services, Custodians(owner, confirmer)
        await self.change(
            lambda transaction: collections.appoint(
                transaction, services.authority, by, collection, wanted, services.owner_actions
            ),
            by,
        )

    async def ask_purge(self, collection: str, document: UUID, version: int, by: Principal = OWNER) -> PurgeCard:
        """Ask for a purge."""
        parts = (self.services.authority, self.services.printer)
        wanted = NewPurge(document, version, "a test")
        return await self.change(lambda transaction: purge.request(transaction, *parts, by, collection, wanted), by)

    async def confirm_purge(self, collection: str, id_: UUID, by: Principal) -> PurgeCard:
        """Carry a purge out."""
        parts = (self.services.authority, self.services.printer)
        return await self.change(lambda transaction: purge.confirm(transaction, *parts, by, collection, id_), by)

    async def search(self, by: Principal, query: str, collection: str | None = None, limit: int = 10) -> SearchAnswer:
        """Search, as the entrypoints do."""
        arguments: dict[str, object] = {"query": query, "limit": limit}
        if collection is not None:
            arguments["collection"] = collection
        call = Call(Entrypoint.HTTP, "test", by)
        services = self.services
        return await services.calls.serve(call, lambda: services.search.search(call, by, arguments))

    async def token(self, subject: str, **rest: Any) -> str:
        """A personal access token of `subject`."""
        issue = partial(tokens.issue, wanted=NewToken(subject, "test", **rest), issuer=OPERATOR)
        return (await self.change(issue, OPERATOR)).token
