"""What the composition root hands to the command line, and how a command uses it."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from app.authz.builtin import OPERATOR
from app.domain.calls import Call, Entrypoint
from app.domain.principal import Principal
from app.entrypoints.services import Services
from app.errors import (
    CapacityExceeded,
    ConfigurationError,
    Denied,
    EmbedderUnavailable,
    IndexUnavailable,
    InsufficientScope,
    InvalidRequest,
    NotFound,
    StacksError,
    Timeout,
    Unauthenticated,
)
from app.identity import tokens

T = TypeVar("T")
_EXIT_CODES: tuple[tuple[tuple[type[StacksError], ...], int], ...] = (
    ((InvalidRequest, ConfigurationError), 2),
    ((Denied, InsufficientScope, Unauthenticated), 3),
    ((NotFound,), 4),
    ((IndexUnavailable, EmbedderUnavailable, Timeout, CapacityExceeded), 5),
)


@dataclass(frozen=True, slots=True)
class Kit:
    """Settings are opaque here: they are read by one call and handed back to another."""

    settings: Callable[[], Any]
    described: Callable[[], list[Any]]
    services: Callable[[Any], AbstractAsyncContextManager[Services]]
    migrate: Callable[[Any], None]
    serve: Callable[[Any], None]
    work: Callable[[Any, asyncio.Event], Awaitable[None]]
    stdio: Callable[[Services, str], Awaitable[None]]


def kit(context: typer.Context) -> Kit:
    """The kit of this run."""
    found: Kit = context.obj
    return found


def run(context: typer.Context, work: Callable[[Services, Principal], Awaitable[T]]) -> T:
    """Run one command's work with the parts of this instance, as the caller of the command line.

    With `STACKS_TOKEN` set that is the token's holder, else the operator of this server.
    """
    tools = kit(context)

    async def carried_out() -> T:
        async with tools.services(tools.settings()) as services:
            return await work(services, await _caller(services))

    return asyncio.run(carried_out())


async def _caller(services: Services) -> Principal:
    credential = os.environ.get("STACKS_TOKEN")
    if credential is None:
        return OPERATOR
    return await services.database.read(lambda transaction: tokens.authenticate(transaction, credential))


def call(operation: str, principal: Principal, collection: str | None = None) -> Call:
    """A call of the command line, for the log."""
    return Call(Entrypoint.CLI, operation, principal, collection)


def show(value: Any, *, as_json: bool) -> None:
    """Print what a command found: as JSON for programs, as a table or lines for people."""
    plain = msgspec.to_builtins(value)
    if as_json:
        typer.echo(json.dumps(plain, ensure_ascii=False))
    elif isinstance(plain, list):
        _table(plain)
    elif isinstance(plain, dict):
        for name, one in plain.items():
            typer.echo(f"{name}: {_cell(one)}")
    else:
        typer.echo(plain)


def _table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        typer.echo("(none)")
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    Console(markup=False).print(table)


def _cell(value: Any) -> str:
    shown = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    # Titles and file names are other people's text: a terminal must not take orders from them.
    return "".join(character if character.isprintable() else "\ufffd" for character in shown)


def fail(error: StacksError, *, as_json: bool) -> NoReturn:
    """Say what is wrong on stderr and leave with the exit code for its kind."""
    if as_json:
        body = {"code": error.code, "message": error.message, "details": error.details}
        typer.echo(json.dumps(body, ensure_ascii=False), err=True)
    else:
        typer.echo(f"{error.code}: {error.message}", err=True)
    raise SystemExit(next((code for kinds, code in _EXIT_CODES if isinstance(error, kinds)), 1))
