"""Commands on purges: request, confirm, list, withdraw; erase."""

from typing import Annotated
from uuid import UUID

import typer

from app.db.session import Transaction
from app.entrypoints.cli.collecting import Slug
from app.entrypoints.cli.kit import NO_UUID, PAGE, Errand, Json, everything, kit, line, run
from app.entrypoints.cli.output import OTHER, show
from app.ingest import purge
from app.ingest.purge import NewPurge, PurgeCard

Id = Annotated[UUID, typer.Argument(help="As `purge list` shows it.", metavar="PURGE_ID")]
COLUMNS = ("id", "document_id", "version", "status", "reason", "requested_by", "decided_by", "erased_at")


def request(
    context: typer.Context,
    slug: Slug,
    document: Annotated[UUID, typer.Argument(help="As `document list` shows it.", metavar="DOCUMENT_ID")],
    version: Annotated[int, typer.Argument(min=1, max=2**31 - 1, help="The number of its version.")],
    reason: Annotated[str, typer.Option(help="Why; kept with the purge.")],
    as_json: Json = False,
) -> None:
    """Ask for a version that is not live to be deleted for good; the collection's purge confirmer decides."""
    wanted = NewPurge(document, version, line("--reason", reason))

    async def asked(transaction: Transaction, errand: Errand) -> PurgeCard:
        services = errand.services
        return await purge.request(transaction, services.authority, services.printer, errand.caller, slug, wanted)

    done = run(context, lambda errand: errand.change(lambda transaction: asked(transaction, errand), slug, document))
    show(done, as_json=as_json)


def confirm(context: typer.Context, slug: Slug, purge_id: Id, as_json: Json = False) -> None:
    """Carry out a purge that somebody else asked for. There is no way back."""

    async def confirmed(transaction: Transaction, errand: Errand) -> PurgeCard:
        services = errand.services
        return await purge.confirm(transaction, services.authority, services.printer, errand.caller, slug, purge_id)

    done = run(
        context,
        lambda errand: errand.change(
            lambda transaction: confirmed(transaction, errand), slug, deadline=purge.DEADLINE_SECONDS
        ),
    )
    show(done, as_json=as_json)


def withdraw(context: typer.Context, slug: Slug, purge_id: Id, as_json: Json = False) -> None:
    """Drop a purge that is not confirmed yet."""

    async def withdrawn(transaction: Transaction, errand: Errand) -> PurgeCard:
        services = errand.services
        return await purge.withdraw(transaction, services.authority, services.printer, errand.caller, slug, purge_id)

    done = run(context, lambda errand: errand.change(lambda transaction: withdrawn(transaction, errand), slug))
    show(done, as_json=as_json)


def listed(context: typer.Context, slug: Slug, as_json: Json = False) -> None:
    """The purges of a collection, and whether each was confirmed and erased from the disk."""

    async def read(snapshot: Transaction, errand: Errand) -> list[PurgeCard]:
        services, by = errand.services, errand.caller
        return await everything(
            lambda after: purge.listed(
                snapshot, services.authority, services.printer, by, slug, after=after, limit=PAGE
            ),
            lambda card: card.id,
            NO_UUID,
        )

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand), slug))
    show(found, as_json=as_json, columns=COLUMNS)


def erase(context: typer.Context, as_json: Json = False) -> None:
    """Rewrite the tables that purges have deleted from, so that nothing is left in their files. Searches wait.

    Needs the login that owns the schema. Exit code 1 when a purge waits on, since an older transaction is still open.
    """
    tools = kit(context)
    done = tools.erase(tools.settings())
    show(done, as_json=as_json)
    if done.waiting:
        raise SystemExit(OTHER)
