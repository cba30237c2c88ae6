"""`stacks demo`: load the two-role fixture corpus, write tokens for its principals, and serve."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import typer

from app.authz.builtin import OPERATOR
from app.db.session import Transaction
from app.entrypoints.cli import fixture
from app.entrypoints.cli.issuing import all_tokens
from app.entrypoints.cli.kit import Errand, Json, Kit, kit
from app.entrypoints.cli.output import show
from app.entrypoints.services import Services
from app.errors import Unauthenticated
from app.identity import custody, tokens
from app.identity.tokens import IssuedToken, NewToken

LABEL = "demo"  # what its tokens are called


class Holder(msgspec.Struct, frozen=True):
    """One principal of the demo, and its token."""

    subject: str
    token: str


class Credentials(msgspec.Struct, frozen=True):
    """The file that the demo writes: addresses, and principals by name."""

    url: str
    mcp_url: str
    principals: dict[str, Holder]


def demo(context: typer.Context, as_json: Json = False) -> None:
    """Load the fixture corpus, write tokens for its principals, and serve until Ctrl-C."""
    tools = kit(context)
    settings = tools.settings()
    place = Path(settings.data_dir) / "demo" / "credentials.json"
    try:
        with tools.hold(settings):  # else each step would start the embedded Postgres, and stop it
            tools.migrate(settings)
            url = asyncio.run(_prepare(tools, settings, place))
            _announce(url, place, as_json=as_json)
            tools.serve(settings)
    except KeyboardInterrupt:
        return


def _announce(url: str, place: Path, *, as_json: bool) -> None:
    if as_json:
        show({"url": url, "mcp_url": f"{url}/mcp", "credentials": str(place)}, as_json=True)
    else:
        typer.echo(f"Closed Stacks: {url}  (MCP at {url}/mcp)")
        typer.echo(f"Tokens of the demo's principals: {place}")
    sys.stdout.flush()  # a pipe must not keep it back until the server ends


async def _prepare(tools: Kit, settings: Any, place: Path) -> str:
    async with tools.services(settings) as services:
        said = fixture.manifest()
        if not await _is_loaded(services):
            await fixture.load(services, said)
        await _write_credentials(services, said["principals"], place)
        return services.base_url


async def _is_loaded(services: Services) -> bool:
    """Whether an earlier start came to its end: it issues tokens last of all.

    What people have changed since, a rule revoked or a draft not yet published, is theirs to change: nothing is loaded
    a second time.
    """
    errand = Errand(services, OPERATOR, "token list")
    return any(card.name == LABEL for card in await errand.read(lambda snapshot: all_tokens(snapshot, errand)))


async def _write_credentials(services: Services, principals: list[dict[str, Any]], place: Path) -> None:
    """Write a token for each principal: the one of an earlier start while it is good, else a new one."""
    kept = _kept(place)
    holders = {
        one["name"]: Holder(one["subject"], await _token(services, one["subject"], kept.get(one["name"])))
        for one in principals
    }
    url = services.base_url
    _replace(place, msgspec.json.format(msgspec.json.encode(Credentials(url, f"{url}/mcp", holders)), indent=1))


def _kept(place: Path) -> Mapping[str, Holder]:
    try:
        return msgspec.json.decode(place.read_bytes(), type=Credentials).principals
    except (FileNotFoundError, msgspec.MsgspecError):
        return {}


async def _token(services: Services, subject: str, kept: Holder | None) -> str:
    if kept is not None and await _is_good(services, subject, kept.token):
        return kept.token
    errand = Errand(services, OPERATOR, "token create")

    async def issued(transaction: Transaction) -> IssuedToken:
        return await custody.issue(transaction, services.authority, OPERATOR, NewToken(subject, LABEL))

    return (await errand.change(issued)).token


async def _is_good(services: Services, subject: str, token: str) -> bool:
    try:
        holder = await services.database.read(lambda transaction: tokens.authenticate(transaction, token))
    except Unauthenticated:
        return False
    return holder.key == subject


def _replace(place: Path, content: bytes) -> None:
    """Put `content` at `place`, for our eyes only, whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = place.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(place)
