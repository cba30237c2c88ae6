"""Commands on documents: document list, show, remove."""

from typing import Annotated
from uuid import UUID

import typer

from app.db.session import Transaction
from app.entrypoints.cli.collecting import Slug
from app.entrypoints.cli.kit import NO_UUID, PAGE, Errand, Json, everything, run
from app.entrypoints.cli.output import show
from app.ingest import documents
from app.ingest.documents import DocumentCard

Id = Annotated[UUID, typer.Argument(help="As `document list` shows it.", metavar="ID")]
COLUMNS = ("id", "title", "source_id", "media_type", "labels", "tags", "versions", "status")


def listed(context: typer.Context, slug: Slug, as_json: Json = False) -> None:
    """The documents of a collection: drafts too for who runs it, the published ones for who may search it."""

    async def read(snapshot: Transaction, errand: Errand) -> list[DocumentCard]:
        return await all_documents(snapshot, errand, slug)

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand), slug))
    show(found, as_json=as_json, columns=COLUMNS)


async def all_documents(snapshot: Transaction, errand: Errand, slug: str) -> list[DocumentCard]:
    """Every document of a collection that the caller may know of. Raises as `documents.listed`."""
    services, by = errand.services, errand.caller
    return await everything(
        lambda after: documents.listed(
            snapshot, services.authority, services.printer, by, slug, after=after, limit=PAGE
        ),
        lambda card: card.id,
        NO_UUID,
    )


def shown(context: typer.Context, document: Id, as_json: Json = False) -> None:
    """One document."""

    async def read(snapshot: Transaction, errand: Errand) -> DocumentCard:
        return await documents.shown(snapshot, errand.services.printer, errand.caller, document)

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand), document=document))
    show(found, as_json=as_json)


def remove(context: typer.Context, document: Id, as_json: Json = False) -> None:
    """Take a document out of the collection's next edition; `publish` makes that one."""

    async def removed(transaction: Transaction, errand: Errand) -> dict[str, str]:
        slug = await documents.remove(transaction, errand.services.printer, errand.caller, document)
        return {"document_id": str(document), "collection": slug, "status": "removed"}

    done = run(
        context, lambda errand: errand.change(lambda transaction: removed(transaction, errand), document=document)
    )
    show(done, as_json=as_json)
