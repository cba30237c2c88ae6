"""`stacks`: the command line. Each command is a function elsewhere in this package; this file lists them."""

import sys

import typer

from app.entrypoints.cli import operate
from app.entrypoints.cli.demo import demo
from app.entrypoints.cli.kit import Kit, fail
from app.errors import StacksError

application = typer.Typer(
    name="stacks", help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
config = typer.Typer(help="Settings.", no_args_is_help=True)

application.command()(operate.serve)
application.command()(operate.worker)
application.command()(operate.mcp)
application.command()(operate.migrate)
application.command()(operate.status)
application.command()(demo)
config.command("show")(operate.config_show)
application.add_typer(config, name="config")


def command_line(kit: Kit) -> None:
    """Run the command that the arguments name; leaves with the exit code of the contract."""
    try:
        application(obj=kit)
    except StacksError as error:
        fail(error, as_json="--json" in sys.argv)


__all__ = ["Kit", "command_line"]
