"""Loads the two-role fixture corpus: principals, rules and documents, as far as they are missing.

It may be killed at any point and run again: every step asks first whether it has been taken.
"""

import tomllib
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from app.authz import grants, roles
from app.authz.builtin import OPERATOR
from app.authz.grants import GrantCard, NewGrant
from app.authz.membership import Members
from app.domain.principal import LOCAL_ISSUER, Principal
from app.entrypoints.cli.documents import all_documents
from app.entrypoints.cli.kit import Errand
from app.entrypoints.cli.progress import Bar, bar
from app.entrypoints.cli.ruling import all_grants
from app.entrypoints.cli.uploading import bring_in
from app.entrypoints.services import Services
from app.errors import Conflict, InternalError, NotConfigured
from app.ingest import collections, publish
from app.ingest.collections import NewCollection
from app.ingest.store import Upload

FIXTURES = Path(__file__).parents[3] / "fixtures"


@dataclass(frozen=True, slots=True)
class Edition:
    """What one publish of one collection brings out. `number` is the corpus version that it makes."""

    collection: str
    number: int
    edition: int
    documents: tuple[dict[str, Any], ...]


def manifest() -> dict[str, Any]:
    """What is to be loaded. Raises `NotConfigured` where the fixtures are not installed."""
    place = FIXTURES / "corpus.toml"
    if not place.exists():
        raise NotConfigured("The fixture corpus is not installed here; run this from a checkout.")
    return tomllib.loads(place.read_text())


def editions(said: dict[str, Any]) -> Iterator[Edition]:
    """The editions of every collection, in the order of publishing."""
    published: dict[str, int] = {}
    ordered = sorted(said["documents"], key=_place)
    for (edition, collection), documents in groupby(ordered, key=_place):
        published[collection] = published.get(collection, 0) + 1
        yield Edition(collection, published[collection], edition, tuple(documents))


def _place(document: dict[str, Any]) -> tuple[int, str]:
    return int(document["edition"]), str(document["collection"])


async def load(services: Services, said: dict[str, Any]) -> None:
    """Bring in what is missing, rules before documents."""
    owners = {one["slug"]: Principal(LOCAL_ISSUER, one["owner"]) for one in said["collections"]}
    await _roles(services, said)
    await _collections(services, said, owners)
    await _grants(services, said, owners)
    with bar(len(said["documents"])) as progress:
        for edition in editions(said):
            await _edition(services, owners[edition.collection], edition, progress)


async def _roles(services: Services, said: dict[str, Any]) -> None:
    asked = partial(roles.create, authority=services.authority, by=OPERATOR)
    for role in said["roles"]:
        await _unless_there(Errand(services, OPERATOR, "role create").change(partial(asked, name=role["name"])))
    joined = partial(roles.add_members, authority=services.authority, by=OPERATOR)
    for name, joining in _members(said).items():
        await Errand(services, OPERATOR, "role add").change(partial(joined, name=name, joining=joining))


def _members(said: dict[str, Any]) -> dict[str, Members]:
    """Whom the fixture puts into which role."""
    joining: dict[str, set[str]] = {}
    for principal in said["principals"]:
        for role in principal["roles"]:
            joining.setdefault(role, set()).add(principal["subject"])
    return {role: Members(principals=frozenset(subjects)) for role, subjects in joining.items()}


async def _collections(services: Services, said: dict[str, Any], owners: dict[str, Principal]) -> None:
    create = partial(collections.create, authority=services.authority, owned=services.owner_actions)
    for one in said["collections"]:
        owner, wanted = owners[one["slug"]], NewCollection(one["slug"], one["title"])
        errand = Errand(services, owner, "collection create")
        await _unless_there(errand.change(partial(create, by=owner, wanted=wanted), wanted.slug))


async def _unless_there(change: Awaitable[object]) -> None:
    try:
        await change
    except Conflict:
        return


async def _grants(services: Services, said: dict[str, Any], owners: dict[str, Principal]) -> None:
    operator = Errand(services, OPERATOR, "grants")
    known = {_essence(card) for card in await operator.read(lambda snapshot: all_grants(snapshot, operator))}
    make = partial(grants.grant, authority=services.authority, printer=services.printer)
    for rule in said["grants"]:
        wanted = NewGrant(**rule, reason="demo")
        if _essence(wanted) not in known:
            owner = owners[wanted.collection]
            await Errand(services, owner, "grant").change(partial(make, by=owner, wanted=wanted), wanted.collection)


def _essence(rule: NewGrant | GrantCard) -> tuple[object, ...]:
    return (rule.role, rule.principal, rule.action, rule.effect, rule.collection, rule.label, rule.document)


async def _edition(services: Services, owner: Principal, wanted: Edition, progress: Bar) -> None:
    """Upload what is missing of one edition and publish it, unless that has been done."""
    errand = Errand(services, owner, "publish")
    slug = wanted.collection
    card = await errand.services.database.read(
        lambda snapshot: collections.shown(snapshot, services.authority, owner, slug)
    )
    if int(card.corpus_version.rpartition("@")[2]) < wanted.number:
        await _documents(services, owner, wanted, progress)
        await errand.change(
            lambda transaction: publish.publish(transaction, services.authority, services.printer, owner, slug),
            slug,
            deadline=publish.DEADLINE_SECONDS,
        )


async def _documents(services: Services, owner: Principal, wanted: Edition, progress: Bar) -> None:
    errand = Errand(services, owner, "document add")
    slug = wanted.collection
    there = await services.database.read(lambda snapshot: all_documents(snapshot, errand, slug))
    versions = {card.source_id: card.versions for card in there}
    for one in wanted.documents:
        progress.begin(one["title"])
        # A version that is there already is stored again all the same: that finds its job, which may not be over.
        if versions.get(one["source_id"], 0) <= wanted.edition:
            _, job = await bring_in(errand, slug, _upload(one), progress.share)
            if job.status != "done":
                raise InternalError(f"A document of the fixture could not be read: {job.code}.")
        progress.end()


def _upload(one: dict[str, Any]) -> Upload:
    file = FIXTURES / one["path"]
    labels, tags = tuple(one["labels"]), tuple(one["tags"])
    return Upload(file.name, file.read_bytes(), one["title"], one["source_id"], labels, tags)
