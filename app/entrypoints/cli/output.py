"""What the command line prints. Other people's text never reaches a terminal as orders to it."""

import json
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

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

DONE, OTHER, USAGE, DENIED, NOT_FOUND, UNAVAILABLE = 0, 1, 2, 3, 4, 5
_EXIT_CODES: tuple[tuple[tuple[type[StacksError], ...], int], ...] = (
    ((InvalidRequest, ConfigurationError), USAGE),
    ((Denied, InsufficientScope, Unauthenticated), DENIED),
    ((NotFound,), NOT_FOUND),
    ((IndexUnavailable, EmbedderUnavailable, Timeout, CapacityExceeded), UNAVAILABLE),
)
_PIPED_WIDTH = 10_000  # a row stays one line where no terminal bounds it


def exit_code(error: StacksError) -> int:
    """The exit code of the contract for this kind of error."""
    return next((code for kinds, code in _EXIT_CODES if isinstance(error, kinds)), OTHER)


def show(value: Any, *, as_json: bool, columns: Sequence[str] = ()) -> None:
    """Print what a command found: as JSON for programs, as a table or lines for people.

    Of a list, people are shown `columns` only (all by default); programs get everything.
    """
    plain = msgspec.to_builtins(value)
    if as_json:
        typer.echo(as_text(plain))
    elif isinstance(plain, list):
        _table(plain, columns)
    else:
        for name, one in plain.items():
            typer.echo(f"{name}: {_cell(one)}")


def as_text(plain: Any) -> str:
    """JSON in which every character that a terminal might obey is escaped."""
    written = json.dumps(plain, ensure_ascii=False)
    return "".join(one if _harmless(one) else json.dumps(one)[1:-1] for one in written)


def neutral(text: str, *, keep: str = "") -> str:
    """`text` with a mark in place of controls, invisible and unassigned characters, except those in `keep`."""
    return "".join(one if one in keep or _harmless(one) else "\ufffd" for one in text)


def _harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _table(rows: list[Mapping[str, Any]], columns: Sequence[str]) -> None:
    if not rows:
        typer.echo("(none)")
        return
    shown = columns or list(rows[0])
    on_terminal = sys.stdout.isatty()
    table = Table(box=box.SIMPLE_HEAD if on_terminal else None, pad_edge=False)
    for name in shown:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in shown))
    width = None if on_terminal else _PIPED_WIDTH
    Console(markup=False, emoji=False, highlight=False, width=width).print(table)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    shown = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return neutral(shown)


def complain(error: StacksError, *, as_json: bool, hint: str = "") -> None:
    """Say on stderr what is wrong, and what may help."""
    if as_json:
        body = {"code": error.code, "message": error.message, "details": error.details}
        body |= {"call_id": str(error.call_id)} if error.call_id else {}
        typer.echo(as_text(body | ({"hint": hint} if hint else {})), err=True)
        return
    typer.echo(f"{error.code}: {neutral(error.message)}", err=True)
    if hint:
        typer.echo(f"hint: {hint}", err=True)


def fail(error: StacksError, *, as_json: bool, hint: str = "") -> NoReturn:
    """Say what is wrong and leave with the exit code for its kind."""
    complain(error, as_json=as_json, hint=hint)
    raise SystemExit(exit_code(error))
