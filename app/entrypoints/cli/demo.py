"""`stacks demo`: load the two-role fixture corpus and serve it. Loading can be cut short and run again."""

import json
import os
import tomllib
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import typer

from app.authz import grants, roles
from app.authz.builtin import OPERATOR
from app.authz.grants import GrantCard, NewGrant
from app.authz.roles import Members, RoleCard
from app.db.session import Transaction
from app.domain.principal import LOCAL_ISSUER, Principal
from app.entrypoints.cli.kit import call, kit, run
from app.entrypoints.services import Services
from app.errors import Conflict, InternalError
from app.identity import tokens
from app.identity.tokens import NewToken
from app.ingest import collections, documents, jobs, publish, store
from app.ingest.collections import CollectionCard
from app.ingest.documents import DocumentCard
from app.ingest.publish import Publication
from app.ingest.store import Receipt, Upload

T = TypeVar("T")
FIXTURES = Path(__file__).parents[3] / "fixtures"
FIRST = UUID(int=0)


def demo(context: typer.Context) -> None:
    """Load the fixture corpus, write tokens for its principals, and serve until Ctrl-C."""
    tools = kit(context)
    settings = tools.settings()
    tools.migrate(settings)
    place = Path(settings.data_dir) / "demo" / "credentials.json"
    run(context, lambda services, _: load(services, place))
    typer.echo(f"Closed Stacks: {settings.base_url}  (MCP at {settings.base_url}/mcp)")
    typer.echo(f"Tokens of the demo's principals: {place}")
    try:
        tools.serve(settings)
    except KeyboardInterrupt:
        return


async def load(services: Services, credentials: Path) -> None:
    """Bring the fixture's principals, rules and documents in, as far as they are missing, and write the tokens."""
    manifest = tomllib.loads((FIXTURES / "corpus.toml").read_text())
    await _load_rules(services, manifest)
    for edition, wanted in groupby(sorted(manifest["documents"], key=_edition), key=_edition):
        await _load_edition(services, manifest, edition, list(wanted))
    await _write_credentials(services, manifest, credentials)


def _edition(document: dict[str, Any]) -> int:
    return int(document["edition"])


def _owner_of(manifest: dict[str, Any], collection: str) -> Principal:
    owner = next(one["owner"] for one in manifest["collections"] if one["slug"] == collection)
    return Principal(LOCAL_ISSUER, owner)


async def _load_rules(services: Services, manifest: dict[str, Any]) -> None:
    for role in manifest["roles"]:
        await _unless_there(_change(services, "role create", OPERATOR, partial(_create_role, services, role["name"])))
    for role, members in _members(manifest).items():
        change = partial(roles.set_members, authority=services.authority, by=OPERATOR, name=role, wanted=members)
        await _change(services, "role members", OPERATOR, change)
    for one in manifest["collections"]:
        owner = Principal(LOCAL_ISSUER, one["owner"])
        await _unless_there(_change(services, "collection create", owner, partial(_create, services, owner, one)))
    known = {_essence(card) for card in await _grants(services)}
    for rule in manifest["grants"]:
        wanted = NewGrant(**rule, reason="demo")
        if _essence(wanted) not in known:
            owner = _owner_of(manifest, wanted.collection)
            await _change(services, "grant", owner, partial(_grant, services, owner, wanted))


def _members(manifest: dict[str, Any]) -> dict[str, Members]:
    """Who is in each role that the fixture names. The operator stays an administrator."""
    held: dict[str, set[str]] = {}
    for principal in manifest["principals"]:
        for role in principal["roles"]:
            held.setdefault(role, {OPERATOR.key} if role == "administrator" else set()).add(principal["subject"])
    return {role: Members(principals=frozenset(subjects)) for role, subjects in held.items()}


def _essence(rule: NewGrant | GrantCard) -> tuple[object, ...]:
    return (rule.role, rule.principal, rule.action, rule.effect, rule.collection, rule.label, rule.document)


async def _create_role(services: Services, name: str, transaction: Transaction) -> RoleCard:
    return await roles.create(transaction, services.authority, OPERATOR, name)


async def _create(
    services: Services, owner: Principal, one: dict[str, Any], transaction: Transaction
) -> CollectionCard:
    return await collections.create(
        transaction, services.authority, owner, one["slug"], one["title"], services.owner_actions
    )


async def _grants(services: Services) -> list[GrantCard]:
    return [
        card
        for card in await services.database.read(
            lambda snapshot: grants.listed(snapshot, services.authority, OPERATOR, after=FIRST, limit=1000)
        )
        if card.revoked_at is None
    ]


async def _grant(services: Services, owner: Principal, wanted: NewGrant, transaction: Transaction) -> GrantCard:
    return await grants.grant(transaction, services.authority, services.printer, owner, wanted)


async def _load_edition(
    services: Services, manifest: dict[str, Any], edition: int, wanted: list[dict[str, Any]]
) -> None:
    """Upload what is missing of one edition, read it here and now, and publish the collections it touches."""
    for slug, group in groupby(sorted(wanted, key=_collection), key=_collection):
        owner = _owner_of(manifest, slug)
        there = {card.source_id: card.versions for card in await _documents(services, owner, slug)}
        for one in group:
            if there.get(one["source_id"], 0) < edition:
                receipt = await _change(services, "document add", owner, partial(_store, services, owner, one))
                await services.worker.run_one(receipt.job_id)
                await _require_done(services, owner, receipt)
        await _change(services, "publish", owner, partial(_publish, services, owner, slug), slug)


def _collection(document: dict[str, Any]) -> str:
    return str(document["collection"])


async def _documents(services: Services, owner: Principal, slug: str) -> list[DocumentCard]:
    return await services.database.read(
        lambda snapshot: documents.listed(
            snapshot, services.authority, services.printer, owner, slug, after=FIRST, limit=1000
        )
    )


async def _store(services: Services, owner: Principal, one: dict[str, Any], transaction: Transaction) -> Receipt:
    file = FIXTURES / one["path"]
    upload = Upload(
        file.name, file.read_bytes(), one["title"], one["source_id"], tuple(one["labels"]), tuple(one["tags"])
    )
    return await store.store(
        transaction,
        services.authority,
        services.printer,
        owner,
        one["collection"],
        upload,
        size_max=services.upload_max,
    )


async def _require_done(services: Services, owner: Principal, receipt: Receipt) -> None:
    job = await services.database.read(lambda snapshot: jobs.shown(snapshot, services.printer, owner, receipt.job_id))
    if job.status != "done":
        raise InternalError(f"A fixture document could not be read: {job.code}")


async def _publish(services: Services, owner: Principal, slug: str, transaction: Transaction) -> Publication:
    return await publish.publish(transaction, services.authority, services.printer, owner, slug)


async def _change(
    services: Services,
    operation: str,
    by: Principal,
    work: Callable[[Transaction], Awaitable[T]],
    collection: str | None = None,
) -> T:
    return await services.calls.change(call(operation, by, collection), work)


async def _unless_there(change: Awaitable[object]) -> None:
    try:
        await change
    except Conflict:
        return


async def _write_credentials(services: Services, manifest: dict[str, Any], place: Path) -> None:
    """A token for each principal, kept from an earlier start while the file is there."""
    if not place.exists():
        principals = {
            one["name"]: {"subject": one["subject"], "token": await _token(services, one["subject"])}
            for one in manifest["principals"]
        }
        body = {"url": services.base_url, "mcp_url": f"{services.base_url}/mcp", "principals": principals}
    else:
        kept = json.loads(place.read_text())
        body = {**kept, "url": services.base_url, "mcp_url": f"{services.base_url}/mcp"}
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = place.with_suffix(".new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(body, file, indent=1)
    unfinished.replace(place)


async def _token(services: Services, subject: str) -> str:
    issue = partial(tokens.issue, wanted=NewToken(subject, "demo"), issuer=OPERATOR)
    return (await _change(services, "token create", OPERATOR, issue)).token
