"""Commands that run the place: serve, worker, mcp, migrate, config show."""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from app.entrypoints.cli.kit import TOKEN, Errand, Json, kit, run
from app.entrypoints.cli.output import show
from app.errors import Unauthenticated


def serve(context: typer.Context, as_json: Json = False) -> None:
    """Serve MCP, HTTP and the ingest workers until Ctrl-C. What goes on is said on stderr."""
    tools = kit(context)
    try:
        tools.serve(tools.settings())
    except KeyboardInterrupt:
        return


def worker(
    context: typer.Context,
    tethered: Annotated[bool, typer.Option(help="End when standard input closes.", hidden=True)] = False,
    as_json: Json = False,
) -> None:
    """Read and index uploads until Ctrl-C; run as many as you like, anywhere. What goes on is said on stderr."""
    tools = kit(context)
    asyncio.run(_work(lambda stop: tools.work(tools.settings(), stop), tethered=tethered))


async def _work(work: Callable[[asyncio.Event], Awaitable[None]], *, tethered: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if tethered:
        threading.Thread(target=_until_untied, args=(loop, stop), daemon=True).start()
    await work(stop)


def _until_untied(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # Not through sys.stdin, whose lock a daemon thread must not hold when the interpreter ends.
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(stop.set)


def mcp(context: typer.Context, as_json: Json = False) -> None:
    """Serve one MCP client on standard input and output, as the holder of STACKS_TOKEN."""
    credential = os.environ.get(TOKEN)
    if not credential:
        raise Unauthenticated(f"Set {TOKEN} to a personal access token.")
    stdio = kit(context).stdio

    async def served(errand: Errand) -> None:
        await stdio(errand.services, credential)

    run(context, served)


def migrate(context: typer.Context, as_json: Json = False) -> None:
    """Bring the database's schema, logins and built-in roles up to date."""
    tools = kit(context)
    tools.migrate(tools.settings())
    show({"status": "ok"}, as_json=as_json)


def config_show(context: typer.Context, as_json: Json = False) -> None:
    """Every setting, its value (secrets masked) and where it comes from."""
    show(kit(context).described(), as_json=as_json)
