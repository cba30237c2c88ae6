"""Collections, their documents and editions, for the people who run them."""

import unicodedata
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, delete, get, post, put
from litestar.datastructures import UploadFile
from litestar.enums import RequestEncodingType
from litestar.params import Body

from app.db.session import Transaction
from app.domain.calls import Call
from app.domain.principal import Principal
from app.entrypoints.http.caller import TAKES, named
from app.entrypoints.http.fields import Line
from app.entrypoints.http.paging import LIMIT_DEFAULT, NO_UUID, Page, after, limit_of, page
from app.entrypoints.services import Services
from app.errors import InvalidRequest
from app.ingest import collections, documents, publish, store
from app.ingest.collections import CollectionCard
from app.ingest.documents import DocumentCard
from app.ingest.store import Receipt, Upload
from app.ingest.turnover import Publication


class NewCollection(msgspec.Struct, forbid_unknown_fields=True):
    """A collection to be made. Who confirms purges can be named later, and is never the owner."""

    slug: str
    title: Line
    purge_confirmer: str | None = None


class CustodiansBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who runs a collection and who confirms its purges: two different people."""

    owner: str
    purge_confirmer: str | None = None


class PublishOrder(msgspec.Struct, forbid_unknown_fields=True):
    """`wait` for the collection's running jobs instead of answering `conflict`."""

    wait: bool = False


class UploadForm(msgspec.Struct, forbid_unknown_fields=True):
    """The multipart form of an upload. `labels` and `tags` may be repeated or separated by commas."""

    file: UploadFile
    title: Line | None = None
    source_id: Line | None = None
    labels: list[str] | str | None = None
    tags: list[str] | str | None = None


class CollectionController(Controller):
    """Collections."""

    path = "/api/v1/collections"

    @get()
    async def listed(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[CollectionCard]:
        """The collections that the caller may search or run."""
        start = after(cursor, str, "")
        found = await services.calls.read(
            call,
            lambda snapshot: collections.listed(
                snapshot, services.authority, caller, after=start, limit=limit_of(limit) + 1
            ),
        )
        return page(found, limit, lambda card: card.slug)

    @post()
    async def create(self, services: Services, caller: Principal, call: Call, data: NewCollection) -> CollectionCard:
        """Make a collection; who makes it owns it."""
        call.collection = named(data.slug)
        return await services.calls.change(
            call,
            lambda transaction: collections.create(
                transaction,
                services.authority,
                caller,
                collections.NewCollection(data.slug, data.title, data.purge_confirmer),
                services.owner_actions,
            ),
        )

    @put("/{slug:str}/custodians")
    async def appoint(
        self, services: Services, caller: Principal, call: Call, slug: str, data: CustodiansBody
    ) -> CollectionCard:
        """Hand a collection over: its owner, and who confirms purges, who is somebody else."""
        call.collection = named(slug)
        wanted = collections.Custodians(data.owner, data.purge_confirmer)
        return await services.calls.change(
            call,
            lambda transaction: collections.appoint(
                transaction, services.authority, caller, slug, wanted, services.owner_actions
            ),
        )

    @get("/{slug:str}")
    async def shown(self, services: Services, caller: Principal, call: Call, slug: str) -> CollectionCard:
        """One collection."""
        call.collection = named(slug)
        return await services.calls.read(
            call, lambda snapshot: collections.shown(snapshot, services.authority, caller, slug)
        )

    @get("/{slug:str}/documents")
    async def documents(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        slug: str,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
    ) -> Page[DocumentCard]:
        """The documents that the caller may run or else search."""
        call.collection = named(slug)
        start = after(cursor, UUID, NO_UUID)
        found = await services.calls.read(
            call,
            lambda snapshot: documents.listed(
                snapshot, services.authority, services.printer, caller, slug, after=start, limit=limit_of(limit) + 1
            ),
        )
        return page(found, limit, lambda card: card.id)

    @post("/{slug:str}/documents", status_code=202, opt={TAKES: "multipart/form-data"})
    async def upload(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        slug: str,
        data: Annotated[UploadForm, Body(media_type=RequestEncodingType.MULTI_PART)],
    ) -> Receipt:
        """Upload a file as a draft; its job reads and indexes it."""
        call.collection = named(slug)
        upload = Upload(
            file_name=_plain(data.file.filename),
            content=await data.file.read(services.upload_max + 1),
            title=data.title,
            source_id=data.source_id,
            labels=None if data.labels is None else words(data.labels),
            tags=words(data.tags or ""),
        )
        return await services.calls.change(
            call,
            lambda transaction: store.store(
                transaction,
                services.authority,
                services.printer,
                caller,
                slug,
                upload,
                size_max=services.upload_max,
            ),
        )

    @post("/{slug:str}/publish", status_code=200)
    async def publish(
        self, services: Services, caller: Principal, call: Call, slug: str, data: PublishOrder | None = None
    ) -> Publication:
        """Make every draft of the collection its next edition."""
        call.collection = named(slug)
        if data is not None and data.wait:
            await publish.settled(services.database, services.authority, caller, slug)
        return await services.calls.change(
            call,
            lambda transaction: publish.publish(transaction, services.authority, services.printer, caller, slug),
            deadline=publish.DEADLINE_SECONDS,
        )


class DocumentController(Controller):
    """Documents by id."""

    path = "/api/v1/documents/{document_id:uuid}"

    @get()
    async def shown(self, services: Services, caller: Principal, call: Call, document_id: UUID) -> DocumentCard:
        """One document."""
        call.document_ids = (document_id,)
        return await services.calls.read(
            call, lambda snapshot: documents.shown(snapshot, services.printer, caller, document_id)
        )

    @delete(status_code=204)
    async def remove(self, services: Services, caller: Principal, call: Call, document_id: UUID) -> None:
        """Take a document out of the next edition."""
        call.document_ids = (document_id,)

        async def removed(transaction: Transaction) -> None:
            call.collection = await documents.remove(transaction, services.printer, caller, document_id)

        await services.calls.change(call, removed)


def _plain(file_name: str) -> str:
    if any(unicodedata.category(character) == "Cc" for character in file_name) or "\\" in file_name:
        raise InvalidRequest("file", "its name is not a plain one", allowed="a name without \\ and control characters")
    return file_name


def words(given: list[str] | str) -> tuple[str, ...]:
    """Words from a repeated field or one with commas."""
    parts = [part for one in ([given] if isinstance(given, str) else given) for part in one.split(",")]
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
