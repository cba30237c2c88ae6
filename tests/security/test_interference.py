"""What a caller may not see changes nothing that the caller gets: with all of it and without any of it, the same bytes.

`INTERFERENCE_EXAMPLES` asks for more examples than the few of every run.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from uuid import UUID

import pytest
from httpx import Client
from hypothesis import assume, given, seed, settings
from property.policies import STEADY
from security.interference_corpora import Corpus, Paper, Rule, corpora
from security.interference_probes import Answer, Probe, asked, made_alike, probes, uploads
from security.interference_worlds import Made, twins
from sqlalchemy import text
from support.postgres import RunCluster

from app.analysis.embedder import Embedder
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import AccessScope, Action, Effect
from app.domain.principal import Principal
from app.errors import Denied, NotFound
from app.ingest import jobs
from app.ingest.jobs import JobCard
from app.search import lexical, service

EXAMPLES = int(os.environ.get("INTERFERENCE_EXAMPLES") or 6)


class Trial:
    """Makes the two worlds of one corpus after another and compares them; `tally` counts what was compared."""

    def __init__(self, cluster: RunCluster, template: str, embedder: Embedder, scratch: Path) -> None:
        self._parts = (cluster, template, embedder, scratch)
        self.tally: Counter[str] = Counter()

    @contextmanager
    def worlds(self, corpus: Corpus) -> Iterator[tuple[Made, Client, Client]]:
        """A world with all documents, and one without those that are hidden from the caller."""
        with twins(*self._parts, corpus) as (made, whole, bare):
            self.tally.update(hidden=len(made.hidden), shown=len(made.documents) - len(made.hidden))
            yield made, whole, bare

    def compared(
        self, chosen: Iterable[Probe], whole: Client, bare: Client, ask: Callable[[Client, Probe], Answer] = asked
    ) -> list[str]:
        """The probes that the two worlds answer differently, and how."""
        found = []
        for probe in chosen:
            one, other = ask(whole, probe), ask(bare, probe)
            self._count(one)
            if one != other:
                found.append(f"{probe}: {one} but {other}")
        return found

    def _count(self, answer: Answer) -> None:
        status, _, body = answer
        assert status < 500, body
        self.tally.update(probes=1, refused=status >= 400, found=b'"chunk_id' in body)


@pytest.fixture
def trial(postgres_cluster: RunCluster, postgres_template: str, embedder: Embedder, run_dir: Path) -> Trial:
    return Trial(postgres_cluster, postgres_template, embedder, run_dir / "interference")


def test_hidden_documents_change_no_answer(trial: Trial) -> None:
    @seed(20261201)
    @settings(STEADY, max_examples=EXAMPLES)
    @given(corpora())
    def equal(corpus: Corpus) -> None:
        with trial.worlds(corpus) as (made, whole, bare):
            assume(made.hidden)  # else the worlds are one
            assert trial.compared(probes(corpus, made), whole, bare) == []
            assert trial.compared(uploads(corpus, made), whole, bare, made_alike) == []

    equal()
    print(dict(trial.tally))
    assert trial.tally["hidden"] > EXAMPLES and trial.tally["shown"] > EXAMPLES, "one side was all there was"
    assert trial.tally["found"] > EXAMPLES, "hardly anything was found: that proves little"


# To the reader, "harbour" is a rarer word than "lantern"; counted over everybody's documents it is the commoner one.
LEDGER = Corpus(
    papers=(
        Paper("north", ("harbour", "tide", "quillwort"), (), "published"),
        *(Paper("north", ("lantern", "ledger", word), (), "published") for word in ("zymurgy", "threnody")),
        *(Paper("north", ("harbour", "salary", word), ("pay",), "published") for word in ("oxbow", "vorpal", "marlin")),
    ),
    rules=(
        Rule(("role", "staff"), (Action.SEARCH,), Effect.ALLOW, "north"),
        Rule(("role", "staff"), (Action.SEARCH,), Effect.DENY, "north", "pay"),
    ),
    caller="reader",
)


async def _total(snapshot: Transaction, scope: AccessScope, collection: str | None) -> tuple[str, ...]:
    """The editions, and how many chunks there are in all."""
    count = (await snapshot.connection.execute(text("SELECT count(*) FROM chunk_index"))).scalar_one()
    return (*await _EDITIONS(snapshot, scope, collection), f"chunks@{count}")


async def _candid(transaction: Transaction, printer: TicketPrinter, by: Principal, id_: UUID) -> JobCard:
    """A job, or the word that there is one."""
    try:
        return await _SHOWN(transaction, printer, by, id_)
    except NotFound:
        known = await transaction.connection.execute(text("SELECT FROM jobs WHERE id = :id"), {"id": id_})
        raise (NotFound if known.first() is None else Denied) from None


_EDITIONS, _SHOWN = service._editions, jobs.shown
LEAKY = ("/search", "/mcp", "/jobs/")
EVERYBODYS = text(
    lexical._STATISTICS.text.replace("class_id = ANY(:classes)", "CAST(:classes AS integer[]) IS NOT NULL")
)
LEAKS: tuple[tuple[ModuleType, str, object, tuple[str, ...]], ...] = (
    (lexical, "_STATISTICS", EVERYBODYS, ("/search", "/mcp")),  # the scores know of everybody's documents
    (service, "_editions", _total, ("/search", "/mcp")),  # the answer counts them
    (jobs, "shown", _candid, ("/jobs/",)),  # a refusal tells that there is something
)


def test_a_leak_is_found(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    with trial.worlds(LEDGER) as (made, whole, bare):
        chosen = [one for one in probes(LEDGER, made) if any(place in one.path for place in LEAKY)]
        assert trial.compared(chosen, whole, bare) == []
        for where, name, leak, places in LEAKS:
            with monkeypatch.context() as patched:
                patched.setattr(where, name, leak)
                found = trial.compared(chosen, whole, bare)
            assert {place for place in LEAKY if any(place in one for one in found)} == set(places), name
