"""Whatever is uploaded, removed, published, rolled back and purged: what is found is what a simple model says, every
edition stays what it was, and the statistics are those of a recount.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from property.policies import STEADY
from support.postgres import TICKET_KEY, RunCluster, RunDatabase
from support.whole import assert_whole
from support.world import OWNER, World, local

from app import bootstrap
from app.analysis.embedder import Embedder
from app.config import Settings
from app.errors import Conflict

SOURCES = st.sampled_from(("pan", "pot"))
NUMBERS = count(1)
HISTORY = """
    SELECT d.source_id, p.version FROM publications p JOIN documents d ON d.id = p.document_id
    JOIN collections k ON k.id = d.collection_id
    WHERE k.slug = %s AND p.live_from <= %s AND coalesce(p.live_until > %s, true)
"""


@dataclass(slots=True)
class Modelled:
    """A document: its versions by number (text, and draft, published or purged), and whether it is to be removed."""

    id: UUID
    texts: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    ever: int = 0
    removed: bool = False

    def draft(self) -> int | None:
        """The version that the next publish would make live."""
        waiting = [n for n, state in enumerate(self.states, 1) if state == "draft" and n > self.ever]
        return max(waiting, default=None)


class Shelf(RuleBasedStateMachine):
    """A collection, and the model of it."""

    world: World
    database: RunDatabase
    run: Any

    def __init__(self) -> None:
        super().__init__()
        self.slug = f"shelf-{next(NUMBERS)}"
        self.documents: dict[str, Modelled] = {}
        self.editions: list[dict[str, int]] = [{}]
        self.run(self.world.collection(self.slug))
        self.run(self.world.appoint(self.slug, "peter"))

    @property
    def live(self) -> dict[str, int]:
        return self.editions[-1]

    @rule(source=SOURCES, labels=st.sampled_from((None, None, ("closed",), ())))
    def upload(self, source: str, labels: tuple[str, ...] | None) -> None:
        content = f"The {source} is a kettle, by note {next(NUMBERS)}."
        id_ = self.run(self.world.add(self.slug, source, content, labels=labels))
        document = self.documents.setdefault(source, Modelled(id_))
        assert document.id == id_
        document.texts.append(content)
        document.states.append("draft")
        document.removed = False

    @precondition(lambda self: any(not one.removed for one in self.documents.values()))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        source = data.draw(st.sampled_from([name for name, one in self.documents.items() if not one.removed]))
        self.run(self.world.remove(self.documents[source].id))
        self.documents[source].removed = True

    @rule()
    def publish(self) -> None:
        state = {source: version for source, version in self.live.items() if not self.documents[source].removed}
        for source, document in self.documents.items():
            if not document.removed and (draft := document.draft()) is not None:
                state[source] = draft
        done = self.run(self.world.publish(self.slug))
        self._turned(state, done.corpus_version)

    @precondition(lambda self: len(self.editions) > 1)
    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(1, len(self.editions) - 1))
        state = self.editions[number]
        changed = {source: version for source, version in state.items() if self.live.get(source) != version}
        if any(self.documents[source].states[version - 1] == "purged" for source, version in changed.items()):
            with pytest.raises(Conflict):
                self.run(self.world.rollback(self.slug, number))
            return
        done = self.run(self.world.rollback(self.slug, number))
        for source in changed.keys() - self.live.keys():
            self.documents[source].removed = False
        self._turned(dict(state), done.corpus_version)

    def _turned(self, state: dict[str, int], told: str) -> None:
        if state != self.live:
            self.editions.append(state)
        for source, version in state.items():
            document = self.documents[source]
            document.states[version - 1] = "published"
            document.ever = max(document.ever, version)
        assert told == f"{self.slug}@{len(self.editions) - 1}"

    def _standing(self) -> list[tuple[str, int]]:
        return [
            (source, number)
            for source, document in self.documents.items()
            for number, state in enumerate(document.states, 1)
            if state != "purged" and self.live.get(source) != number
        ]

    @precondition(lambda self: self._standing())
    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        source, number = data.draw(st.sampled_from(self._standing()))
        document = self.documents[source]
        asked = self.run(self.world.ask_purge(self.slug, document.id, number))
        self.run(self.world.confirm_purge(self.slug, asked.id, local("peter")))
        document.states[number - 1] = "purged"

    @invariant()
    def what_is_found_is_what_is_live(self) -> None:
        found = self.run(self.world.search(OWNER, "which note is about a kettle", self.slug, limit=50))
        due = {self.documents[source].texts[version - 1] for source, version in self.live.items()}
        assert {fragment.text for fragment in found.fragments} == due

    @invariant()
    def every_edition_is_what_it_was(self) -> None:
        with self.database.superuser() as connection:
            for number, state in enumerate(self.editions):
                found = connection.execute(HISTORY, [self.slug, number, number]).fetchall()
                assert sorted(found) == sorted(state.items())

    @invariant()
    def the_database_is_whole(self) -> None:
        assert_whole(self.database)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """A loop of the test's own: the machine's steps are no coroutines."""
    with asyncio.Runner() as runner:
        yield runner


def test_editions_keep_to_the_model(
    runner: asyncio.Runner,
    postgres_cluster: RunCluster,
    postgres_template: str,
    tmp_path: Path,
    embedder: Embedder,
) -> None:
    with postgres_cluster.empty(template=postgres_template) as database:
        given = Settings(data_dir=tmp_path / "data", ticket_key=TICKET_KEY)
        services = bootstrap.build(given, database.service_url, embedder)
        Shelf.database, Shelf.run = database, staticmethod(runner.run)
        Shelf.world = runner.run(World(services).begin())
        try:
            run_state_machine_as_test(
                Shelf, settings=settings(STEADY, derandomize=True, max_examples=8, stateful_step_count=20)
            )
        finally:
            runner.run(services.database.close())
