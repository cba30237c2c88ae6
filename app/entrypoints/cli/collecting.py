"""Commands on collections: collection create, list, show, custodians; publish."""

from typing import Annotated

import typer

from app.db.session import Transaction
from app.entrypoints.cli.kit import PAGE, Errand, Json, everything, line, run
from app.entrypoints.cli.output import show
from app.ingest import collections, publish
from app.ingest.collections import CollectionCard, Custodians, NewCollection
from app.ingest.turnover import Publication

Slug = Annotated[str, typer.Argument(help="The collection's slug.", metavar="COLLECTION")]


def create(
    context: typer.Context,
    slug: Annotated[str, typer.Argument(help="1..63 of a-z, 0-9 and -.")],
    title: Annotated[str, typer.Option(help="What people call it.")],
    owner: Annotated[str | None, typer.Option(help="Who owns it; by default who makes it.")] = None,
    as_json: Json = False,
) -> None:
    """Make an empty collection."""

    async def made(transaction: Transaction, errand: Errand) -> CollectionCard:
        services, by = errand.services, errand.caller
        wanted = NewCollection(slug, line("--title", title))
        card = await collections.create(transaction, services.authority, by, wanted, services.owner_actions)
        if owner in (None, card.owner):
            return card
        custodians = Custodians(str(owner))
        return await collections.appoint(transaction, services.authority, by, slug, custodians, services.owner_actions)

    card = run(context, lambda errand: errand.change(lambda transaction: made(transaction, errand), slug))
    show(card, as_json=as_json)


def listed(context: typer.Context, as_json: Json = False) -> None:
    """The collections that you may search or run."""
    show(run(context, lambda errand: errand.read(lambda snapshot: all_collections(snapshot, errand))), as_json=as_json)


async def all_collections(snapshot: Transaction, errand: Errand) -> list[CollectionCard]:
    """All the collections that the caller may search or run."""
    authority, by = errand.services.authority, errand.caller
    return await everything(
        lambda after: collections.listed(snapshot, authority, by, after=after, limit=PAGE), lambda card: card.slug, ""
    )


def shown(context: typer.Context, slug: Slug, as_json: Json = False) -> None:
    """One collection."""

    async def read(snapshot: Transaction, errand: Errand) -> CollectionCard:
        return await collections.shown(snapshot, errand.services.authority, errand.caller, slug)

    show(run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand), slug)), as_json=as_json)


def custodians(
    context: typer.Context,
    slug: Slug,
    owner: Annotated[str, typer.Option(help="Who owns it: a local subject, or issuer|subject.")],
    purge_confirmer: Annotated[str | None, typer.Option(help="Who confirms purges; somebody else.")] = None,
    as_json: Json = False,
) -> None:
    """Hand a collection over: what its custodians held as such ends, and these get it."""
    wanted = Custodians(owner, purge_confirmer)

    async def appointed(transaction: Transaction, errand: Errand) -> CollectionCard:
        services = errand.services
        return await collections.appoint(
            transaction, services.authority, errand.caller, slug, wanted, services.owner_actions
        )

    show(
        run(context, lambda errand: errand.change(lambda transaction: appointed(transaction, errand), slug)),
        as_json=as_json,
    )


def publish_collection(
    context: typer.Context,
    slug: Slug,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all its uploads have been read.")] = False,
    as_json: Json = False,
) -> None:
    """Make every draft of a collection its next edition."""

    async def published(errand: Errand) -> Publication:
        services, by = errand.services, errand.caller
        if wait:
            await publish.settled(services.database, services.authority, by, slug)
        return await errand.change(
            lambda transaction: publish.publish(transaction, services.authority, services.printer, by, slug),
            slug,
            deadline=publish.DEADLINE_SECONDS,
        )

    show(run(context, published), as_json=as_json)
