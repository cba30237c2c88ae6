"""Commands on rights: role create, list, members, add, remove; grant, grants, revoke."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import typer

from app.authz import grants, groups, roles
from app.authz.compile import Authority
from app.authz.grants import GrantCard, NewGrant
from app.authz.membership import Members
from app.authz.roles import RoleCard
from app.db.session import Transaction
from app.domain.principal import Principal
from app.entrypoints.cli.kit import NO_UUID, PAGE, Errand, Json, everything, line, moment, run
from app.entrypoints.cli.output import show
from app.errors import InvalidRequest

Name = Annotated[str, typer.Argument(help="The role's name.", metavar="ROLE")]
GroupName = Annotated[str, typer.Argument(help="A local name, or issuer|name.", metavar="GROUP")]
Principals = Annotated[list[str] | None, typer.Option("--principal", help="A local subject, or issuer|subject.")]
Groups = Annotated[list[str] | None, typer.Option("--group", help="A group, as a token names it: issuer|group.")]
Roles = Annotated[list[str] | None, typer.Option("--role", help="A role whose members are to be members of this one.")]
GRANT_COLUMNS = (
    *("id", "role", "principal", "effect", "action", "collection", "label", "document", "valid_until"),
    *("granted_by", "revoked_at"),
)
Change = Callable[[Transaction, Authority, Principal, str, Members], Awaitable[Members]]


def role_create(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Make an empty role."""

    async def made(transaction: Transaction, errand: Errand) -> RoleCard:
        return await roles.create(transaction, errand.services.authority, errand.caller, name)

    show(run(context, lambda errand: errand.change(lambda transaction: made(transaction, errand))), as_json=as_json)


def role_list(context: typer.Context, as_json: Json = False) -> None:
    """Every role."""

    async def read(snapshot: Transaction, errand: Errand) -> list[RoleCard]:
        authority, by = errand.services.authority, errand.caller
        return await everything(
            lambda after: roles.listed(snapshot, authority, by, after=after, limit=PAGE), lambda card: card.name, ""
        )

    show(run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand))), as_json=as_json)


def role_members(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Who is in a role."""

    async def read(snapshot: Transaction, errand: Errand) -> Members:
        return await roles.members(snapshot, errand.services.authority, errand.caller, name)

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand)))
    show(_sorted(found), as_json=as_json)


def role_add(
    context: typer.Context,
    name: Name,
    principal: Principals = None,
    group: Groups = None,
    role: Roles = None,
    as_json: Json = False,
) -> None:
    """Put principals, groups or roles into a role; who is in it already stays."""
    _change(context, roles.add_members, name, _named(principal, group, role), as_json=as_json)


def role_remove(
    context: typer.Context,
    name: Name,
    principal: Principals = None,
    group: Groups = None,
    role: Roles = None,
    as_json: Json = False,
) -> None:
    """Take principals, groups or roles out of a role; at once."""
    _change(context, roles.remove_members, name, _named(principal, group, role), as_json=as_json)


def group_members(context: typer.Context, name: GroupName, as_json: Json = False) -> None:
    """Who was put into a group here; whom a token puts there, only the token knows."""

    async def read(snapshot: Transaction, errand: Errand) -> Members:
        return await groups.members(snapshot, errand.services.authority, errand.caller, name)

    found = run(context, lambda errand: errand.read(lambda snapshot: read(snapshot, errand)))
    show(_sorted(found), as_json=as_json)


def group_add(
    context: typer.Context,
    name: GroupName,
    principal: Principals = None,
    group: Groups = None,
    as_json: Json = False,
) -> None:
    """Put principals, or groups of any issuer, into a group; who is in it already stays."""
    _change(context, groups.add_members, name, _named(principal, group, None), as_json=as_json)


def group_remove(
    context: typer.Context,
    name: GroupName,
    principal: Principals = None,
    group: Groups = None,
    as_json: Json = False,
) -> None:
    """Take principals or groups out of a group; at once."""
    _change(context, groups.remove_members, name, _named(principal, group, None), as_json=as_json)


def _named(principals: list[str] | None, groups: list[str] | None, nested: list[str] | None) -> Members:
    named = Members(frozenset(principals or ()), frozenset(groups or ()), frozenset(nested or ()))
    if not named.pairs():
        raise InvalidRequest("members", "none named", allowed="one or more of --principal, --group and --role")
    return named


def _change(context: typer.Context, change: Change, name: str, named: Members, *, as_json: bool) -> None:
    async def changed(transaction: Transaction, errand: Errand) -> Members:
        return await change(transaction, errand.services.authority, errand.caller, name, named)

    done = run(context, lambda errand: errand.change(lambda transaction: changed(transaction, errand)))
    show(_sorted(done), as_json=as_json)


@dataclass(frozen=True, slots=True)
class _MemberLists:
    principals: list[str]
    groups: list[str]
    roles: list[str]


def _sorted(members: Members) -> _MemberLists:
    return _MemberLists(sorted(members.principals), sorted(members.groups), sorted(members.roles))


def grant(
    context: typer.Context,
    action: Annotated[str, typer.Argument(help="search, open, ingest, publish, purge, manage or audit.")],
    collection: Annotated[str, typer.Argument(help="The collection's slug.")],
    role: Annotated[str | None, typer.Option(help="For everybody in this role.")] = None,
    principal: Annotated[str | None, typer.Option(help="For one: a local subject, or issuer|subject.")] = None,
    deny: Annotated[bool, typer.Option("--deny", help="Forbid it; that beats every allow.")] = False,
    label: Annotated[str | None, typer.Option(help="Only documents with this access label.")] = None,
    document: Annotated[UUID | None, typer.Option(help="Only this document.")] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="RFC 3339; now by default.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="RFC 3339; for good by default.")] = None,
    reason: Annotated[str, typer.Option(help="Why; kept with the rule.")] = "",
    as_json: Json = False,
) -> None:
    """Allow (or, with --deny, forbid) an action on a collection, a label or a document, from the next call on."""
    wanted = NewGrant(
        action=action,
        collection=collection,
        effect="deny" if deny else "allow",
        role=role,
        principal=principal,
        label=label,
        document=document,
        valid_from=moment("--from", start),
        valid_until=moment("--until", until),
        reason=line("--reason", reason),
    )

    async def made(transaction: Transaction, errand: Errand) -> GrantCard:
        services = errand.services
        return await grants.grant(transaction, services.authority, services.printer, errand.caller, wanted)

    done = run(context, lambda errand: errand.change(lambda transaction: made(transaction, errand), collection))
    show(done, as_json=as_json)


def grants_list(
    context: typer.Context,
    collection: Annotated[str | None, typer.Option(help="Only those on this collection.")] = None,
    ended: Annotated[bool, typer.Option("--all", help="Revoked ones too.")] = False,
    as_json: Json = False,
) -> None:
    """The rules on the collections that you manage."""

    found = run(context, lambda errand: errand.read(lambda snapshot: all_grants(snapshot, errand), collection))
    wanted = [card for card in found if collection in (None, card.collection) and (ended or card.revoked_at is None)]
    show(wanted, as_json=as_json, columns=GRANT_COLUMNS)


async def all_grants(snapshot: Transaction, errand: Errand) -> list[GrantCard]:
    """Every rule on the collections that the caller manages, revoked ones among them."""
    authority, by = errand.services.authority, errand.caller
    return await everything(
        lambda after: grants.listed(snapshot, authority, by, after=after, limit=PAGE), lambda card: card.id, NO_UUID
    )


def revoke(
    context: typer.Context,
    grant_id: Annotated[UUID, typer.Argument(help="As `grants` lists it.", metavar="GRANT_ID")],
    as_json: Json = False,
) -> None:
    """End a rule, from the next call on. It stays readable, with who ended it and when."""

    async def ended(transaction: Transaction, errand: Errand) -> GrantCard:
        return await grants.revoke(transaction, errand.services.authority, errand.caller, grant_id)

    show(run(context, lambda errand: errand.change(lambda transaction: ended(transaction, errand))), as_json=as_json)
