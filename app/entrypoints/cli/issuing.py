"""Commands on personal access tokens: token create, list, revoke."""

from typing import Annotated

import typer

from app.db.session import Transaction
from app.entrypoints.cli.kit import PAGE, Errand, Json, everything, line, moment, run
from app.entrypoints.cli.output import show
from app.identity import custody
from app.identity.tokens import IssuedToken, NewToken, TokenCard

TOKEN_COLUMNS = ("id", "subject", "actor", "name", "actions", "collections", "expires_at", "revoked_at")


def create(
    context: typer.Context,
    subject: Annotated[str, typer.Argument(help="Who the holder is to be.")],
    name: Annotated[str, typer.Option(help="What it is for.")],
    actor: Annotated[str | None, typer.Option(help="The agent that holds it for the subject.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="TIME", help="RFC 3339 with an offset.")] = None,
    action: Annotated[list[str] | None, typer.Option(help="Only for this action; repeat for more.")] = None,
    collection: Annotated[list[str] | None, typer.Option(help="Only for this collection; repeat for more.")] = None,
    as_json: Json = False,
) -> None:
    """Make a personal access token. It is shown this once."""
    wanted = NewToken(
        subject,
        line("--name", name),
        actor,
        custody.bounds(action or None, collection or None, moment("--expires", expires)),
    )

    async def issued(transaction: Transaction, errand: Errand) -> IssuedToken:
        return await custody.issue(transaction, errand.services.authority, errand.caller, wanted)

    show(run(context, lambda errand: errand.change(lambda transaction: issued(transaction, errand))), as_json=as_json)


def listed(
    context: typer.Context,
    subject: Annotated[str | None, typer.Argument(help="Whose; by default all that you may see.")] = None,
    as_json: Json = False,
) -> None:
    """Tokens, without their secrets."""
    found = run(context, lambda errand: errand.read(lambda snapshot: all_tokens(snapshot, errand, subject)))
    show(found, as_json=as_json, columns=TOKEN_COLUMNS)


async def all_tokens(snapshot: Transaction, errand: Errand, subject: str | None = None) -> list[TokenCard]:
    """Every token of `subject`, or all that the caller may see. Raises as `custody.listed`."""
    authority, by = errand.services.authority, errand.caller
    return await everything(
        lambda after: custody.listed(snapshot, authority, by, subject, after=after, limit=PAGE),
        lambda card: card.id,
        "",
    )


def revoke(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(help="As `token list` shows it; never the token.", metavar="TOKEN_ID")],
    as_json: Json = False,
) -> None:
    """End a token, from the next call on."""

    async def ended(transaction: Transaction, errand: Errand) -> dict[str, str]:
        await custody.revoke(transaction, errand.services.authority, errand.caller, token_id)
        return {"id": token_id, "status": "revoked"}

    show(run(context, lambda errand: errand.change(lambda transaction: ended(transaction, errand))), as_json=as_json)
