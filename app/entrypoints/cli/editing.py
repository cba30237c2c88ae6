"""Commands on editions: rollback; collection versions, diff."""

from typing import Annotated

import typer

from app.db.session import Transaction
from app.entrypoints.cli.collecting import Slug
from app.entrypoints.cli.kit import NO_UUID, PAGE, Errand, Json, everything, run
from app.entrypoints.cli.output import show
from app.ingest import editions, rollback
from app.ingest.editions import NEWEST, DocumentChange, EditionCard, Span
from app.ingest.publish import DEADLINE_SECONDS
from app.ingest.turnover import Publication

Edition = Annotated[str, typer.Argument(help="An edition: COLLECTION@N, or N.", metavar="VERSION")]
EDITION_COLUMNS = ("corpus_version", "documents", "published_by", "published_at", "rolled_back_to")


def roll_back(context: typer.Context, slug: Slug, version: Edition, as_json: Json = False) -> None:
    """Publish the state of an earlier edition as a new one. Drafts stay drafts."""
    number = editions.edition_number(slug, version)

    async def rolled(transaction: Transaction, errand: Errand) -> Publication:
        services = errand.services
        return await rollback.rollback(transaction, services.authority, services.printer, errand.caller, slug, number)

    done = run(
        context,
        lambda errand: errand.change(lambda transaction: rolled(transaction, errand), slug, deadline=DEADLINE_SECONDS),
    )
    show(done, as_json=as_json)


def versions(context: typer.Context, slug: Slug, as_json: Json = False) -> None:
    """The editions of a collection, newest first."""

    async def read(snapshot: Transaction, errand: Errand) -> list[EditionCard]:
        services, by = errand.services, errand.caller
        return await everything(
            lambda before: editions.listed(
                snapshot, services.authority, services.printer, by, slug, before=before, limit=PAGE
            ),
            lambda card: card.number,
            NEWEST,
        )

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand), slug))
    show(found, as_json=as_json, columns=EDITION_COLUMNS)


def diff(context: typer.Context, slug: Slug, old: Edition, new: Edition, as_json: Json = False) -> None:
    """The documents that the second of two editions holds otherwise than the first (0: before any edition)."""
    span = Span(editions.edition_number(slug, old, least=0), editions.edition_number(slug, new, least=0))

    async def read(snapshot: Transaction, errand: Errand) -> list[DocumentChange]:
        services, by = errand.services, errand.caller
        return await everything(
            lambda after: editions.diff(
                snapshot, services.authority, services.printer, by, slug, span, after=after, limit=PAGE
            ),
            lambda change: change.document_id,
            NO_UUID,
        )

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand), slug))
    show(found, as_json=as_json)
