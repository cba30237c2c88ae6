"""What the composition root hands to the command line, and how a command uses it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NoReturn, TypeVar
from uuid import UUID

import typer

from app.authz.builtin import OPERATOR
from app.db.erase import Erasure
from app.db.session import Transaction
from app.domain.access import SLUG
from app.domain.calls import Call, Entrypoint
from app.domain.principal import Principal
from app.entrypoints.services import Services
from app.errors import InvalidRequest, Unauthenticated

T = TypeVar("T")
TOKEN = "STACKS_" + "TOKEN"  # the name of a variable, not one of them
PAGE = 500
NO_UUID = UUID(int=0)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class Kit:
    """Settings are opaque here: they are read by one call and handed back to another."""

    settings: Callable[[], Any]
    described: Callable[[], list[Any]]
    hold: Callable[[Any], AbstractContextManager[object]]
    services: Callable[[Any], AbstractAsyncContextManager[Services]]
    migrate: Callable[[Any], None]
    erase: Callable[[Any], Erasure]
    serve: Callable[[Any], None]
    work: Callable[[Any, asyncio.Event], Awaitable[None]]
    stdio: Callable[[Services, str], Awaitable[None]]


def kit(context: typer.Context) -> Kit:
    """The kit of this run."""
    found: Kit = context.obj
    return found


@dataclass(frozen=True, slots=True)
class Errand:
    """One command being carried out: the parts, the caller, and the name the log knows it by."""

    services: Services
    caller: Principal
    operation: str

    def call(self, collection: str | None = None, document: UUID | None = None) -> Call:
        """A call for the log; of a collection's name it keeps a slug and nothing else."""
        named = collection if collection is not None and SLUG.fullmatch(collection) else None
        documents = () if document is None else (document,)
        return Call(Entrypoint.CLI, self.operation, self.caller, named, document_ids=documents)

    async def read(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        collection: str | None = None,
        document: UUID | None = None,
    ) -> T:
        """Read in one snapshot, on the record."""
        return await self.services.calls.read(self.call(collection, document), work)

    async def change(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        collection: str | None = None,
        document: UUID | None = None,
        deadline: float | None = None,
    ) -> T:
        """Change something, its record committed with it."""
        return await self.services.calls.change(self.call(collection, document), work, deadline=deadline)

    async def rehearse(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Try something out, on the record; what it does is taken back."""
        return await self.services.calls.rehearse(self.call(), work)


def run(context: typer.Context, work: Callable[[Errand], Awaitable[T]]) -> T:
    """Run one command's work with the parts of this instance, as the caller of the command line.

    With `STACKS_TOKEN` set that is the token's holder, else the operator of this server.
    """
    tools = kit(context)
    operation = context.command_path.partition(" ")[2]

    async def carried_out() -> T:
        async with tools.services(tools.settings()) as services:
            return await work(Errand(services, await _caller(services, operation), operation))

    return asyncio.run(carried_out())


async def _caller(services: Services, operation: str) -> Principal:
    credential = os.environ.get(TOKEN)
    if credential is None:
        return OPERATOR
    try:
        return await services.credentials.authenticate(credential)
    except Unauthenticated:
        return await services.calls.serve(Call(Entrypoint.CLI, operation), _refuse)


async def _refuse() -> NoReturn:
    raise Unauthenticated(f"{TOKEN} holds no token that is good here.")


def hint(code: int) -> str:
    """What may help somebody who was refused."""
    if code != 3 or TOKEN in os.environ:
        return ""
    return (
        "You acted as the operator of this server, who may run everything and read no document and no call. "
        f"Set {TOKEN} to act as the holder of a token."
    )


async def everything(page: Callable[[Any], Awaitable[list[T]]], key: Callable[[T], Any], first: Any) -> list[T]:
    """All pages of a list: `page` reads the one after a key, `PAGE` items long."""
    found: list[T] = []
    while True:
        part = await page(key(found[-1]) if found else first)
        found += part
        if len(part) < PAGE:
            return found


def moment(option: str, given: str | None) -> datetime | None:
    """A moment as people give it. Raises `InvalidRequest` unless it says its time zone."""
    allowed = "RFC 3339 with an offset, such as 2027-01-31T18:00:00+03:00"
    try:
        at = None if given is None else datetime.fromisoformat(given)
    except ValueError as error:
        raise InvalidRequest(option, "not a moment", allowed=allowed) from error
    if at is not None and at.tzinfo is None:
        raise InvalidRequest(option, "without a time zone", allowed=allowed)
    return at


def line(option: str, given: str) -> str:
    """A text of one line, to be stored and shown. Raises `InvalidRequest` for control characters in it."""
    if any(character < " " or character == "\x7f" or "\ud800" <= character <= "\udfff" for character in given):
        raise InvalidRequest(option, "holds control characters", allowed="one line of text")
    return given
