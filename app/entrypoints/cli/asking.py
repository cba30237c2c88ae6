"""Commands that ask: search, and calls."""

from typing import Annotated, Any

import typer

from app.audit import read
from app.audit.read import CallRecord
from app.db.session import Transaction
from app.domain.search import LIMIT_DEFAULT
from app.entrypoints.cli.kit import Errand, Json, run
from app.entrypoints.cli.output import as_text, neutral, show
from app.entrypoints.envelope import answered, failed
from app.errors import InvalidRequest, StacksError

CALLS_MAX = 1000
CALL_COLUMNS = (
    *("at", "principal", "actor", "entrypoint", "operation", "collection", "outcome", "corpus_versions"),
    "call_id",
)


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for, in plain words; any language.")],
    collection: Annotated[str | None, typer.Option(help="Search this one only.")] = None,
    limit: Annotated[int, typer.Option(help="How many fragments at most.")] = LIMIT_DEFAULT,
    as_json: Json = False,
) -> None:
    """Search what you may read, as the holder of STACKS_TOKEN."""
    arguments: dict[str, Any] = {"query": query, "limit": limit}
    arguments |= {} if collection is None else {"collection": collection}

    async def found(errand: Errand) -> dict[str, Any]:
        call = errand.call()
        try:
            answer = await errand.services.calls.serve(
                call, lambda: errand.services.search.search(call, errand.caller, arguments)
            )
        except StacksError as error:
            if as_json:  # a program reads one envelope, whatever came of it
                typer.echo(as_text(failed(error)))
            raise
        return answered(call, answer)

    envelope = run(context, found)
    if as_json:
        typer.echo(as_text(envelope))
        return
    for place, fragment in enumerate(envelope["results"], start=1):
        _fragment(place, fragment)
    typer.echo(envelope["message"] or f"Searched: {', '.join(envelope['corpus_versions'])}")


def _fragment(place: int, one: dict[str, Any]) -> None:
    page = "" if one["page"] is None else f", page {one['page']}"
    where = f"{one['corpus_version']}, version {one['document_version']}{page}"
    typer.echo(neutral(f"{place}. {one['title']} ({where})"))
    if one["heading_path"]:
        typer.echo(neutral("   " + " > ".join(one["heading_path"])))
    for quoted in neutral(one["text"], keep="\n\t").split("\n"):
        typer.echo(f"   | {quoted}")
    typer.echo(neutral(f"   {one['source_uri']}\n", keep="\n"))


def calls(
    context: typer.Context,
    outcome: Annotated[str | None, typer.Option(help="Only those that ended so: ok, empty, denied, ...")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    as_json: Json = False,
) -> None:
    """The call log, newest first: all of it for an auditor, for an owner the calls on its collections."""
    if not 1 <= limit <= CALLS_MAX:
        raise InvalidRequest("--limit", "out of range", allowed=f"1..{CALLS_MAX}")

    async def page(snapshot: Transaction, errand: Errand) -> list[CallRecord]:
        scope = await read.reach(snapshot, errand.services.authority, errand.caller)
        return await read.page(snapshot, scope, limit=limit, outcome=outcome)

    found = run(context, lambda errand: errand.read(lambda snapshot: page(snapshot, errand)))
    show(found, as_json=as_json, columns=CALL_COLUMNS)
