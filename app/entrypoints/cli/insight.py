"""Commands that say why: explain, preview, who; and policy check, before a change is made."""

from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from app.authz import preview as previews
from app.authz import scenarios
from app.authz.explain import Explanation, Target
from app.authz.explain import explain as explained
from app.authz.preview import Preview, Searcher
from app.authz.rules import Subject
from app.authz.scenarios import Verdict
from app.db.session import Transaction
from app.domain.access import SLUG, Action
from app.domain.principal import is_principal_key
from app.entrypoints.cli.kit import Errand, Json, moment, run
from app.entrypoints.cli.output import show
from app.errors import InvalidRequest

Who = Annotated[str, typer.Argument(help="A local subject, issuer|subject, or role:NAME.", metavar="PRINCIPAL")]
What = Annotated[str, typer.Argument(help="A document's id, a collection's slug, or SLUG#LABEL.", metavar="RESOURCE")]
ActionName = Annotated[str, typer.Argument(help=", ".join(Action), metavar="ACTION")]
Claimed = Annotated[list[str] | None, typer.Option("--group", help="A group that the principal's token claims.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="As it stood then; RFC 3339. Now by default.")]


def explain(
    context: typer.Context,
    principal: Who,
    action: ActionName,
    resource: What,
    group: Claimed = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Whether somebody may do something: the verdict, every rule that matched, and how it came to them."""
    subject, target, when = _subject(principal, group), _target(resource), moment("--at", at)

    async def asked(snapshot: Transaction, errand: Errand) -> Explanation:
        authority, by = errand.services.authority, errand.caller
        return await explained(snapshot, authority, by, subject, _action(action), target, when)

    found = run(
        context,
        lambda errand: errand.read(lambda snapshot: asked(snapshot, errand), target.collection, target.document),
    )
    if as_json:
        show(found, as_json=True)
        return
    show([{"verdict": "allowed" if found.allowed else "not allowed"}], as_json=False)
    rows = [
        {"effect": one.effect, "on": one.on, "via": " > ".join(one.via), "why": one.reason} for one in found.reasons
    ]
    show(rows, as_json=False)


def preview(
    context: typer.Context, principal: Who, group: Claimed = None, at: At = None, as_json: Json = False
) -> None:
    """What a principal or role could search, now or then, in the collections that you manage or audit."""
    subject, when = _subject(principal, group), moment("--at", at)

    async def looked(snapshot: Transaction, errand: Errand) -> Preview:
        services = errand.services
        return await previews.preview(snapshot, services.authority, services.printer, errand.caller, subject, when)

    found = run(context, lambda errand: errand.read(lambda snapshot: looked(snapshot, errand)))
    show(found if as_json else list(found.documents), as_json=as_json)


def who(
    context: typer.Context,
    resource: What,
    action: Annotated[str, typer.Option(help=", ".join(Action))] = Action.SEARCH.value,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Every principal, group and role that may search a document (or do another action on it)."""
    target, when = _target(resource), moment("--at", at)

    async def listed(snapshot: Transaction, errand: Errand) -> list[Searcher]:
        return await previews.who(snapshot, errand.services.authority, errand.caller, _action(action), target, when)

    found = run(
        context,
        lambda errand: errand.read(lambda snapshot: listed(snapshot, errand), target.collection, target.document),
    )
    show(found, as_json=as_json)


def policy_check(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Scenario files.", metavar="FILE…", dir_okay=False)],
    as_json: Json = False,
) -> None:
    """Try scenario files on top of the rules in force; nothing is changed. Exit code 1 when a claim fails."""
    said = [one for file in files for one in _scenarios(file)]

    async def checked(errand: Errand) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for scenario in said:

            async def tried(transaction: Transaction, scenario: scenarios.Scenario = scenario) -> list[Verdict]:
                return await scenarios.check(transaction, errand.services.authority, errand.caller, scenario)

            verdicts += await errand.rehearse(tried)
        return verdicts

    verdicts = run(context, checked)
    rows = [
        {"scenario": one.scenario, "claim": one.claim, "expected": one.expected, "passed": one.passed}
        for one in verdicts
    ]
    show(rows, as_json=as_json)
    if not all(one.passed for one in verdicts):
        raise typer.Exit(1)


def _scenarios(file: Path) -> list[scenarios.Scenario]:
    try:
        return scenarios.parse(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest("FILE", "cannot be read", allowed="scenario files, as in policies/scenarios") from error


def _subject(name: str, groups: list[str] | None) -> Subject:
    kind, colon, rest = name.partition(":")
    if colon and kind == "role" and SLUG.fullmatch(rest):
        return Subject("role", rest)
    for one in (name, *(groups or ())):
        if not is_principal_key(one):
            raise InvalidRequest("PRINCIPAL", "not a name", allowed="a local subject, issuer|subject, or role:NAME")
    return Subject("principal", name, tuple(sorted(groups or ())))


def _target(resource: str) -> Target:
    slug, _, label = resource.partition("#")
    try:
        return Target(document=UUID(resource))
    except ValueError:
        if SLUG.fullmatch(slug) is None:
            raise InvalidRequest("RESOURCE", "names nothing", allowed="a document's id, SLUG or SLUG#LABEL") from None
        return Target(slug, label or None)


def _action(name: str) -> Action:
    if name not in tuple(Action):
        raise InvalidRequest("ACTION", "not an action", allowed=", ".join(Action))
    return Action(name)
