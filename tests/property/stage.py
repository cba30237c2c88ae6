"""A database on which random policies are put one after the other, and the five evaluators that judge them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import casbin
import psycopg
from casbin.model import Model
from property.policies import CLASSES, COLLECTIONS, SLUGS, Given
from sqlalchemy import text
from support.postgres import TICKET_KEY, RunDatabase

from app.authz import reference
from app.authz.check import still_permits
from app.authz.classes import covers
from app.authz.compile import compile_scope
from app.db.engine import create_engine
from app.db.session import Database, Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import SYSTEM, Action, within
from app.domain.principal import Principal

T = TypeVar("T")
MODEL = Path(__file__).parents[2] / "policies" / "model.conf"
DEADLINE_SECONDS = 50  # a ticket lives for 60
# Actions for which the rows of `documents` are shown; for the others the database says which classes it would be.
BY_ROWS = (Action.SEARCH, Action.OPEN, Action.INGEST, Action.PUBLISH, Action.MANAGE)

_ROWS = text("SELECT class_id FROM documents")
_LISTED = text("SELECT unnest(ticket_classes('purge', 'audit', 'create'))")
_JOIN = """
    INSERT INTO memberships (member_kind, member, container_kind, container, granted_by, granted_at, valid_from,
                             valid_until, revoked_at, revoked_by)
    VALUES (%s, %s, %s, %s, 'test', %s, %s, %s, %s, %s)
"""
_GRANT = """
    INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, collection_id, label, document_id,
                        granted_by, granted_at, valid_from, valid_until, revoked_at, revoked_by)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'test', %s, %s, %s, %s, %s)
"""


class WholePolicy:
    """Casbin with every rule and every membership that stands at a moment, asked directly: no loading by caller."""

    def __init__(self, given: Given, at: int | None) -> None:
        model = Model()
        model.load_model_from_text(MODEL.read_text())
        for rule, action in given.rows():
            if rule.span.stands(at):
                model.add_policy("p", "p", [":".join(rule.subject), rule.on.resource, action.value, rule.effect.value])
        for one in given.joined:
            if one.span.stands(at):
                model.add_policy("g", "g", [":".join(one.member), ":".join(one.container)])
        for number, party in enumerate(one for caller in given.callers for one in caller.parties):
            for held in (f"principal:{party.key}", *(f"group:{group}" for group in party.group_keys)):
                model.add_policy("g", "g", [f"party:{number}", held])
        for access_class in CLASSES:
            for resource in access_class.resources:
                model.add_policy("g", "g2", [f"class:{access_class.id}", resource])
        self._parties = {
            id(one): f"party:{number}"
            for number, one in enumerate(one for caller in given.callers for one in caller.parties)
        }
        self._enforcer = casbin.Enforcer(model)
        self._enforcer.rm_map["g"].max_hierarchy_level = 100
        self._enforcer.build_role_links()

    def allows(self, caller: Principal, action: Action, obj: str, slug: str | None) -> bool:
        """Whether every party may, each within the bounds of its token."""
        return all(
            within(party.narrowing, action, slug)
            and self._enforcer.enforce(self._parties[id(party)], obj, action.value)
            for party in caller.parties
        )


class Stage:
    """The service's connection, the superuser's to change rules behind its back, and an event loop of its own."""

    def __init__(self, runner: asyncio.Runner, service_url: str, behind: "psycopg.Connection[tuple[object, ...]]"):
        self._runner = runner
        self._engine = create_engine(service_url, pool_size=2)
        self.service_url = service_url
        self.behind = behind
        self.database = Database(
            self._engine, check_tickets=TicketPrinter(TICKET_KEY).check, deadline_seconds=DEADLINE_SECONDS
        )
        self.printer = TicketPrinter(TICKET_KEY)

    def furnish(self) -> None:
        """The collections, the classes, and one document in each class."""
        run = self.behind.execute
        for slug, id_ in COLLECTIONS.items():
            run("INSERT INTO collections (id, slug, title, owner) VALUES (%s, %s, %s, 'nobody')", (id_, slug, slug))
        for one in CLASSES:
            run(
                "INSERT INTO access_classes (id, collection_id, labels, document_id) OVERRIDING SYSTEM VALUE "
                "VALUES (%s, %s, %s, %s)",
                (one.id, one.collection_id, list(one.labels), one.document_id),
            )
            run(
                "INSERT INTO documents (id, class_id, collection_id, source_id, title, created_by) "
                "VALUES (coalesce(%s, gen_random_uuid()), %s, %s, %s, 'a title', 'test')",
                (one.document_id, one.id, one.collection_id, f"source-{one.id}"),
            )

    def put(self, given: Given, base: datetime) -> None:
        """Make these the rules; their moments count from `base`."""
        joins = [(*one.member, *one.container, *_dated(one.span.dates(base))) for one in given.joined]
        grants = [
            (*one.subject, action.value, one.effect.value, *one.on.columns, *_dated(one.span.dates(base)))
            for one, action in given.rows()
        ]
        with self.behind.transaction(), self.behind.cursor() as cursor:
            cursor.execute("DELETE FROM memberships")
            cursor.execute("DELETE FROM grants")
            cursor.executemany(_JOIN, joins)
            cursor.executemany(_GRANT, grants)

    def on(self, given: Given, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Put `given` behind the back of a transaction that has begun, and do `work` in it.

        So the transaction's `now()` is the base of the rules' moments, to the microsecond.
        """

        async def begun(transaction: Transaction) -> T:
            self.put(given, transaction.at)
            return await work(transaction)

        return self.run(lambda: self.database.write(begun))

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await something on the stage's own loop."""

        async def awaited() -> T:
            return await work()

        return self._runner.run(awaited())

    async def by_rows(self, transaction: Transaction, caller: Principal, action: Action) -> set[int]:
        """The classes that row-level security shows to the holder of a real ticket."""
        await self.printer.present(transaction, caller, action)
        statement = _ROWS if action in BY_ROWS else _LISTED
        return set((await transaction.connection.execute(statement)).scalars())


def _dated(dates: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*dates, "test" if dates[-1] is not None else None)


@contextmanager
def staged(database: RunDatabase) -> Iterator[Stage]:
    """A furnished stage on an empty, migrated database."""
    with asyncio.Runner() as runner, database.superuser() as behind:
        stage = Stage(runner, database.service_url, behind)
        stage.furnish()
        yield stage
        stage.run(stage.database.close)


class Tally:
    """How many cases were judged, how many of them by all five and how many were permitted."""

    def __init__(self) -> None:
        self.cases = self.by_five = self.permitted = 0
        self.agreed: set[Given] = set()  # so that none is counted twice


def judge(stage: Stage, given: Given, tally: Tally) -> list[str]:
    """Put a policy up, and ask every evaluator about every caller, action, class and moment; the disagreements."""

    async def asked(transaction: Transaction) -> list[str]:
        found = []
        for at in (None, *given.moments):
            whole = WholePolicy(given, at)
            for caller in given.callers:
                for action in Action:
                    found += await _compare(stage, transaction, given, whole, (caller, action, at), tally)
        return found

    if given in tally.agreed:
        return []
    disagreements = stage.on(given, asked)
    if not disagreements:
        tally.agreed.add(given)
    return disagreements


async def _compare(
    stage: Stage,
    transaction: Transaction,
    given: Given,
    whole: WholePolicy,
    asked: tuple[Principal, Action, int | None],
    tally: Tally,
) -> list[str]:
    caller, action, at = asked
    moment = transaction.at + timedelta(microseconds=at or 0)
    scope = await compile_scope(transaction, caller, action, at=None if at is None else moment)
    compiled = set(scope.classes())
    rows = await stage.by_rows(transaction, caller, action) if at is None else None
    oracle = given.reference(transaction.at)
    found = []
    for one in CLASSES:
        slug = SLUGS[one.collection_id]
        verdicts = {
            "compiled": one.id in compiled,
            "checked": still_permits(scope, slug, one),
            "covered": covers(scope, one),
            "casbin": whole.allows(caller, action, f"class:{one.id}", slug),
            "oracle": reference.allows(oracle, caller, action, one, moment, now=at is None),
        } | ({} if rows is None else {"rows": one.id in rows})
        tally.cases += 1
        tally.by_five += rows is not None
        tally.permitted += verdicts["oracle"]
        if len(set(verdicts.values())) > 1:
            found.append(f"{caller} {action} {one} at {at}: {verdicts}")
    system = {"compiled": scope.system, "casbin": whole.allows(caller, action, SYSTEM, None)}
    return found if len(set(system.values())) == 1 else [*found, f"{caller} {action} on the system at {at}: {system}"]
