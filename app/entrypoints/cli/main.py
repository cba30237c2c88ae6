"""`stacks`: the command line. Each command is a function elsewhere in this package; this file lists them."""

import sys
from collections.abc import Callable

import typer

from app.entrypoints.cli import (
    accept,
    adding,
    asking,
    collecting,
    demo,
    documents,
    editing,
    insight,
    issuing,
    operate,
    purging,
    ruling,
    status,
    syncing,
    working,
)
from app.entrypoints.cli.kit import Kit, hint
from app.entrypoints.cli.output import exit_code, fail
from app.errors import StacksError

COMMANDS: dict[str, Callable[..., None]] = {
    "serve": operate.serve,
    "worker": operate.worker,
    "mcp": operate.mcp,
    "migrate": operate.migrate,
    "demo": demo.demo,
    "status": status.status,
    "publish": collecting.publish_collection,
    "rollback": editing.roll_back,
    "search": asking.search,
    "grant": ruling.grant,
    "grants": ruling.grants_list,
    "revoke": ruling.revoke,
    "explain": insight.explain,
    "preview": insight.preview,
    "who": insight.who,
    "calls": asking.calls,
    "accept": accept.accept,
}
GROUPS: dict[str, tuple[str, dict[str, Callable[..., None]]]] = {
    "collection": (
        "Collections.",
        {
            "create": collecting.create,
            "list": collecting.listed,
            "show": collecting.shown,
            "custodians": collecting.custodians,
            "versions": editing.versions,
            "diff": editing.diff,
            "sync": syncing.sync_folder,
        },
    ),
    "document": (
        "Documents.",
        {"add": adding.add, "list": documents.listed, "show": documents.shown, "remove": documents.remove},
    ),
    "job": (
        "Jobs of the ingest workers.",
        {"list": working.listed, "show": working.shown, "cancel": working.cancel, "retry": working.retry},
    ),
    "purge": (
        "Versions deleted for good, by two people.",
        {
            "request": purging.request,
            "confirm": purging.confirm,
            "list": purging.listed,
            "withdraw": purging.withdraw,
            "erase": purging.erase,
        },
    ),
    "role": (
        "Roles and who is in them.",
        {
            "create": ruling.role_create,
            "list": ruling.role_list,
            "members": ruling.role_members,
            "add": ruling.role_add,
            "remove": ruling.role_remove,
        },
    ),
    "group": (
        "Groups, across issuers.",
        {"members": ruling.group_members, "add": ruling.group_add, "remove": ruling.group_remove},
    ),
    "policy": ("Scenario files.", {"check": insight.policy_check}),
    "token": (
        "Personal access tokens.",
        {"create": issuing.create, "list": issuing.listed, "revoke": issuing.revoke},
    ),
    "config": ("Settings.", {"show": operate.config_show}),
}
HELP = """Closed Stacks: documents searched under each caller's own rights.

Commands act as the operator of this server, who may run everything and read no document; with STACKS_TOKEN set, as the
holder of that token. Exit codes: 0 done, 2 wrong usage, 3 denied, 4 not found, 5 unavailable, 1 anything else.
"""


def _application() -> typer.Typer:
    made = typer.Typer(
        name="stacks", help=HELP, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )
    for name, command in COMMANDS.items():
        made.command(name)(command)
    for name, (meaning, commands) in GROUPS.items():
        group = typer.Typer(help=meaning, no_args_is_help=True)
        for part, command in commands.items():
            group.command(part)(command)
        made.add_typer(group, name=name)
    return made


def command_line(kit: Kit) -> None:
    """Run the command that the arguments name; leaves with the exit code of the contract."""
    try:
        _application()(obj=kit, prog_name="stacks")
    except StacksError as error:
        fail(error, as_json="--json" in sys.argv, hint=hint(exit_code(error)))


__all__ = ["Kit", "command_line"]
