"""Two worlds that differ by what one caller may not see, and a real server before each.

The second is a copy of the first from which every row of the hidden documents was cut out: whatever is left has the
same ids, moments and editions, so the two must answer alike to the byte, with nothing to be mapped. For the same
reason every edition that hidden documents came out with exists in both: a collection's edition is public to whoever
may search a part of it, and a publish raises it whatever it was about. So does any rule, or first document of its
kind, the policy version; owners and auditors read that in the log.
"""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import uvicorn
from litestar import Litestar
from security.interference_corpora import OWNERS, Corpus, Paper
from sqlalchemy.engine import make_url
from support.postgres import TICKET_KEY, RunCluster, RunDatabase
from support.waiting import until
from support.world import World, local

from app import bootstrap
from app.analysis.embedder import Embedder
from app.authz import reference
from app.authz.reference import GrantRow, MembershipRow, Policy
from app.config import Settings
from app.domain.access import (
    GRANTABLE,
    SYSTEM,
    AccessClass,
    collection_resource,
    document_resource,
    label_resource,
)
from app.entrypoints.http.application import create
from app.entrypoints.mcp.server import HttpMcp
from app.ingest import documents

PUBLIC_URL = "http://stacks.example"  # both worlds', since fragments say where they are to be opened
_TABLES_WITH = """
    SELECT table_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND column_name = %s AND table_name <> 'grants'
"""
# What an edition counts as changed, without the hidden documents that came or went with it.
_FEWER = """
    UPDATE editions e SET documents = documents - (
        SELECT count(DISTINCT d.id) FROM documents d JOIN document_versions v ON v.document_id = d.id
        WHERE d.id = ANY(%s) AND d.collection_id = e.collection_id
          AND e.corpus_version IN (v.published_from, v.published_until))
"""


@dataclass(frozen=True, slots=True)
class Made:
    """A world as it was built: the database's name, the documents and their jobs in the order of the papers."""

    name: str
    token: str = field(repr=False)
    documents: tuple[UUID, ...]
    jobs: tuple[UUID, ...]
    hidden: frozenset[UUID]
    """The documents that the caller may do nothing with."""
    hidden_classes: tuple[int, ...]


class Builder:
    """Fills one database by what a corpus says, through the services that the entrypoints use."""

    def __init__(self, world: World, corpus: Corpus) -> None:
        self._world, self._corpus = world, corpus
        self.documents: list[UUID] = []
        self.jobs: list[UUID] = []

    async def build(self) -> str:
        """Two editions of each collection, rules between them, drafts on top; the caller's token."""
        world, papers = self._world, self._corpus.papers
        await world.members("collection-creator", principals=set(OWNERS.values()))
        await world.members("interns", principals={"reader"})
        await world.members("staff", roles={"interns"})
        for slug, owner in OWNERS.items():
            await world.collection(slug, by=local(owner))
        for paper in papers:
            await self._upload(paper, paper.text(), paper.labels)
        await self._publish()
        await self._rules()
        for number, paper in enumerate(papers):
            await self._second(paper, self.documents[number])
        await self._publish()
        for paper in papers:
            if paper.fate == "draft":
                await self._upload(paper, paper.text(3))
        return await world.token(self._corpus.caller)

    async def _upload(self, paper: Paper, text: str, labels: tuple[str, ...] | None = None) -> None:
        name, by = paper.words[-1], local(OWNERS[paper.collection])
        content = b"%PDF-1.7 broken" if paper.fate == "failed" else text.encode()
        receipt = await self._world.upload(
            paper.collection, f"{name}.txt", content, by=by, source_id=name, labels=labels
        )
        await self._world.services.worker.run_one(receipt.job_id)
        if receipt.document_id not in self.documents:
            self.documents.append(receipt.document_id)
            self.jobs.append(receipt.job_id)

    async def _second(self, paper: Paper, id_: UUID) -> None:
        by, printer = local(OWNERS[paper.collection]), self._world.services.printer
        if paper.fate in ("revised", "relabelled"):
            await self._upload(paper, paper.text(2), ("pay",) if paper.fate == "relabelled" else None)
        elif paper.fate == "removed":
            await self._world.change(partial(documents.remove, printer=printer, by=by, document=id_), by)

    async def _publish(self) -> None:
        for slug, owner in OWNERS.items():
            await self._world.publish(slug, by=local(owner))

    async def _rules(self) -> None:
        for rule, action in self._corpus.made_rules():
            kind, name = rule.subject
            document = None if rule.paper is None else self.documents[rule.paper]
            await self._world.grant(
                action.value,
                rule.collection,
                by=local(OWNERS[rule.collection]),
                effect=rule.effect.value,
                label=rule.label,
                document=document,
                **{kind: name},
            )


def _policy(execute: Any) -> Policy:
    rules = execute("""
        SELECT ARRAY[subject_kind, subject, action, effect], ARRAY[granted_at, valid_from, valid_until, revoked_at],
               resource_kind, collection_id, label, document_id FROM grants
    """).fetchall()
    joined = execute("""
        SELECT member_kind, member, container_kind, container, granted_at, valid_from, valid_until, revoked_at
        FROM memberships
    """).fetchall()
    slugs = {str(id_): slug for id_, slug in execute("SELECT id, slug FROM collections").fetchall()}
    granted = tuple(GrantRow(*(*said, _resource(*on), *dates)) for said, dates, *on in rules)
    return Policy(tuple(MembershipRow(*row) for row in joined), granted, slugs)


def _resource(kind: str, collection: UUID, label: str, document: UUID) -> str:
    match kind:
        case "document":
            return document_resource(document)
        case "label":
            return label_resource(collection, label)
        case "collection":
            return collection_resource(collection)
    return SYSTEM


def _classes(execute: Any) -> list[AccessClass]:
    rows = execute("SELECT id, collection_id, labels, document_id FROM access_classes").fetchall()
    return [AccessClass(id_, collection, tuple(labels), own) for id_, collection, labels, own in rows]


@contextmanager
def twins(
    cluster: RunCluster, template: str, embedder: Embedder, scratch: Path, corpus: Corpus
) -> Iterator[tuple[Made, httpx.Client, httpx.Client]]:
    """A world and its copy without what the caller may not see, each behind a server, and clients as the caller."""
    with cluster.empty(template=template) as whole:
        _hasten(whole)
        made = _made(whole, embedder, scratch, corpus)
        with cluster.empty(template=made.name) as bare:
            _hasten(bare)
            _cut_out(bare, made)
            with (
                _served(whole, embedder, scratch, made.token) as one,
                _served(bare, embedder, scratch, made.token) as other,
            ):
                yield made, one, other


def _hasten(database: RunDatabase) -> None:
    """Thousands of calls are written down here, and none has to outlive a power cut."""
    with database.superuser() as behind:
        behind.execute(f"ALTER DATABASE {_name(database)} SET synchronous_commit = off")


def _name(database: RunDatabase) -> str:
    return str(make_url(database.service_url).database)


def _made(database: RunDatabase, embedder: Embedder, scratch: Path, corpus: Corpus) -> Made:
    async def build() -> tuple[Builder, str]:
        services = bootstrap.build(_settings(scratch, 1), database.service_url, embedder)
        builder = Builder(await World(services).begin(), corpus)
        token = await builder.build()
        await services.database.close()
        return builder, token

    with asyncio.Runner() as runner:
        builder, token = runner.run(build())
    hidden, classes = _hidden(database, corpus.caller)
    return Made(_name(database), token, tuple(builder.documents), tuple(builder.jobs), hidden, classes)


def _hidden(database: RunDatabase, caller: str) -> tuple[frozenset[UUID], tuple[int, ...]]:
    """What the oracle, which shares no code with the engine, lets the caller do nothing with."""
    with database.superuser() as behind:
        policy, classes = _policy(behind.execute), _classes(behind.execute)
        now = datetime.now(UTC)
        hidden = tuple(
            one.id
            for one in classes
            if not any(reference.allows(policy, local(caller), action, one, now, now=True) for action in GRANTABLE)
        )
        rows = behind.execute("SELECT id FROM documents WHERE class_id = ANY(%s)", [list(hidden)]).fetchall()
    return frozenset(UUID(str(id_)) for (id_,) in rows), hidden


def _cut_out(database: RunDatabase, made: Made) -> None:
    """Delete every row of the hidden documents and of their classes. Rules and the log stay: they are no documents."""
    with database.superuser() as behind:
        behind.execute("SET session_replication_role = replica")  # no trigger may count what never was
        behind.execute(_FEWER, [list(made.hidden)])
        for column, gone in (("class_id", list(made.hidden_classes)), ("document_id", list(made.hidden))):
            for (table,) in behind.execute(_TABLES_WITH, [column]).fetchall():
                behind.execute(f"DELETE FROM {table} WHERE {column} = ANY(%s)", [gone])
        behind.execute("DELETE FROM documents WHERE id = ANY(%s)", [list(made.hidden)])
        behind.execute("DELETE FROM access_classes WHERE id = ANY(%s)", [list(made.hidden_classes)])


@contextmanager
def _served(database: RunDatabase, embedder: Embedder, scratch: Path, token: str) -> Iterator[httpx.Client]:
    """A server of its own on a thread, with an event loop of its own; a client of it with a token."""
    # With its protocol named, or asyncio does not turn Nagle's algorithm off: 40 ms a request.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
        settings = _settings(scratch, port)

        def factory() -> Litestar:
            return _application(settings, database.service_url, embedder)

        server = uvicorn.Server(uvicorn.Config(factory, factory=True, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive(), "a server that has started")
            headers = {"authorization": f"Bearer {token}", "accept-encoding": "identity"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


def _application(settings: Settings, service_url: str, embedder: Embedder) -> Litestar:
    services = bootstrap.build(settings, service_url, embedder)
    metadata = f"{settings.base_url}/.well-known/oauth-protected-resource/mcp"
    mcp = HttpMcp(services, metadata)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        async with mcp.lifespan():
            yield
        await services.database.close()

    return create(services, mcp.application, metadata, [lifespan])


def _settings(scratch: Path, port: int) -> Settings:
    # A slow machine must not make one of the two worlds answer that it cannot answer.
    return Settings(data_dir=scratch, port=port, public_url=PUBLIC_URL, ticket_key=TICKET_KEY, database_seconds=60)
