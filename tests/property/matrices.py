"""Access matrices of real organisations, replayed: who may read what is known beforehand, to the last pair.

Every permission is a document. It is reached in turn by each way that a rule can reach it: by a label of its own
within one collection, as a document with rules of its own, as a collection of its own. A matrix's roles are roles,
its users local principals; roles were mined from the matrix, and reproduce it exactly.
"""

import asyncio
import csv
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import psycopg
from psycopg import sql
from sqlalchemy import text
from support.postgres import TICKET_KEY, RunDatabase

from app.authz.compile import compile_scope
from app.db.engine import create_engine
from app.db.session import Database, Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import LOCAL_ISSUER, Principal

ROOT = Path(__file__).resolve().parents[2]
ACL = Path(os.environ.get("STACKS_SHARED_DATA") or ROOT.parent / "shared" / "data") / "acl"
SMALL = ("domino", "healthcare", "emea", "firewall1")
LARGE = ("americas_small",)
WAYS = ("collection", "label", "document")
BATCH = 50  # users in one transaction
DEADLINE_SECONDS = 50  # a ticket lives for 60
_SPACE = UUID(int=20261130)
_ROWS = text("SELECT title FROM documents")


@dataclass(frozen=True, slots=True)
class Matrix:
    """Users, who is in which role, which role reads what; and who reads what, as a whole."""

    name: str
    users: tuple[str, ...]
    user_roles: tuple[tuple[str, str], ...]
    role_permissions: tuple[tuple[str, str], ...]
    assignments: dict[str, set[str]]

    @property
    def permissions(self) -> list[str]:
        """Every permission there is."""
        return sorted({permission for held in self.assignments.values() for permission in held})


@dataclass(slots=True)
class Figures:
    """What the replay found: pairs of user and document, and those that a check got wrong."""

    matrix: str
    users: int
    documents: int
    pairs: int = 0
    false_grants: int = 0
    false_denials: int = 0
    wrong: list[str] = field(default_factory=list)

    def compare(self, user: str, by: str, found: set[str], due: set[str]) -> None:
        """Take down what one user found by one check, and what was due."""
        self.false_grants += len(found - due)
        self.false_denials += len(due - found)
        self.wrong += [f"{user} by {by}: {sorted(found ^ due)[:3]}"] if found != due else []


def read(name: str) -> Matrix:
    """A matrix of the folder `ACL`."""
    assignments: dict[str, set[str]] = defaultdict(set)
    for user, permission in _pairs(name, "assignments"):
        assignments[user].add(permission)
    users = tuple(row[0] for row in _table(name, "users"))
    return Matrix(
        name, users, tuple(_pairs(name, "user_roles")), tuple(_pairs(name, "role_permissions")), dict(assignments)
    )


def _pairs(name: str, table: str) -> Iterator[tuple[str, str]]:
    return ((left, right) for left, right in _table(name, table))


def _table(name: str, table: str) -> Iterator[list[str]]:
    with (ACL / name / f"{table}.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        yield from rows


def way(permission: str) -> str:
    """By which kind of resource a permission's document is reached."""
    return WAYS[int(permission.removeprefix("p")) % len(WAYS)]


def put(behind: "psycopg.Connection[tuple[object, ...]]", matrix: Matrix) -> None:
    """Write a matrix into an empty database: collections, classes, documents, memberships, grants."""
    shelf, stacks = uuid5(_SPACE, "shelf"), {}
    documents = {permission: uuid5(_SPACE, f"document {permission}") for permission in matrix.permissions}
    collections = {shelf: "shelf"}
    for permission in documents:
        stacks[permission] = uuid5(_SPACE, permission) if way(permission) == "collection" else shelf
        collections.setdefault(stacks[permission], f"of-{permission}")
    copy_rows(
        behind, "collections", "id slug title owner", ((id_, slug, slug, "x") for id_, slug in collections.items())
    )
    copy_rows(
        behind,
        "access_classes",
        "collection_id labels document_id",
        (
            (stacks[one], [one] if way(one) == "label" else [], id_ if way(one) == "document" else None)
            for one, id_ in documents.items()
        ),
    )
    behind.execute(
        "INSERT INTO documents (id, class_id, collection_id, source_id, title, created_by) "
        "SELECT d.id, c.id, c.collection_id, d.name, d.name, 'test' "
        "FROM unnest(%s::uuid[], %s::text[], %s::uuid[], %s::text[]) AS d (id, name, collection_id, way) "
        "JOIN access_classes c ON c.collection_id = d.collection_id AND CASE d.way WHEN 'document' "
        "THEN c.document_id = d.id WHEN 'label' THEN d.name = ANY(c.labels) ELSE true END",
        (
            list(documents.values()),
            list(documents),
            [stacks[one] for one in documents],
            [way(one) for one in documents],
        ),
    )
    copy_rows(
        behind,
        "memberships",
        "member_kind member container_kind container granted_by",
        (("principal", user, "role", role, "test") for user, role in matrix.user_roles),
    )
    copy_rows(
        behind,
        "grants",
        "subject_kind subject action effect resource_kind collection_id label document_id granted_by",
        (
            (
                "role",
                role,
                "search",
                "allow",
                way(one),
                stacks[one],
                one if way(one) == "label" else None,
                documents[one] if way(one) == "document" else None,
                "test",
            )
            for role, one in matrix.role_permissions
        ),
    )
    behind.execute("ANALYZE")


def copy_rows(
    behind: "psycopg.Connection[tuple[object, ...]]", table: str, columns: str, rows: Iterable[tuple[Any, ...]]
) -> None:
    """Write rows into the named columns of a table."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns.split()))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
    with behind.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def replayed(database: RunDatabase, matrix: Matrix, users: Sequence[str]) -> Figures:
    """Write `matrix` into an empty database, and replay it for `users`."""
    with database.superuser() as behind:
        put(behind, matrix)
        classes = behind.execute("SELECT class_id, title FROM documents").fetchall()
    return asyncio.run(
        _replayed(database.service_url, matrix, {int(str(id_)): str(title) for id_, title in classes}, users)
    )


async def _replayed(url: str, matrix: Matrix, titles: dict[int, str], users: Sequence[str]) -> Figures:
    printer = TicketPrinter(TICKET_KEY)
    service = Database(create_engine(url, pool_size=1), check_tickets=printer.check, deadline_seconds=DEADLINE_SECONDS)
    figures = Figures(matrix.name, len(users), len(titles))
    for start in range(0, len(users), BATCH):
        batch = users[start : start + BATCH]
        await service.read(
            partial(_compare, printer=printer, matrix=matrix, titles=titles, users=batch, figures=figures)
        )
    await service.close()
    return figures


async def _compare(
    transaction: Transaction,
    printer: TicketPrinter,
    matrix: Matrix,
    titles: dict[int, str],
    users: Sequence[str],
    figures: Figures,
) -> None:
    for user in users:
        principal = Principal(LOCAL_ISSUER, user)
        due = matrix.assignments.get(user, set())
        figures.pairs += len(due)
        scope = await compile_scope(transaction, principal, Action.SEARCH)
        figures.compare(user, "scope", {titles[class_id] for class_id in scope.classes()}, due)
        await printer.present(transaction, principal, Action.SEARCH)
        rows = await transaction.connection.execute(_ROWS)
        figures.compare(user, "rows", set(rows.scalars()), due)
