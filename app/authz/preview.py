"""What a role or principal could search, now or then, and what a proposed rule would change; who can search what.

Every answer is compiled as a search's scope is. A proposed rule is really made, in a transaction that is taken back.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.authz.casbin_policy import permits
from app.authz.compile import Authority, of_subject
from app.authz.explain import Target, located
from app.authz.grants import NewGrant, grant
from app.authz.rules import Subject, load
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import Action
from app.domain.principal import Principal
from app.errors import Denied

# Documents live at the moment, by class; with `at`, the ones that were then, in the class they were in.
_DOCUMENTS = text("""
    SELECT DISTINCT h.document_id, k.slug, a.labels
    FROM (
        SELECT DISTINCT ON (document_id) document_id, class_id FROM document_classes
        WHERE since <= coalesce(CAST(:at AS timestamptz), clock_timestamp()) ORDER BY document_id, since DESC
    ) h
    JOIN access_classes a ON a.id = h.class_id JOIN collections k ON k.id = a.collection_id
    WHERE a.id = ANY(:classes) AND a.collection_id = ANY(:collections)
      AND EXISTS (
        SELECT FROM publications p
        LEFT JOIN editions f ON f.collection_id = k.id AND f.corpus_version = p.live_from
        LEFT JOIN editions u ON u.collection_id = k.id AND u.corpus_version = p.live_until
        WHERE p.document_id = h.document_id AND f.published_at <= coalesce(CAST(:at AS timestamptz), clock_timestamp())
          AND (u.published_at IS NULL OR u.published_at > CAST(:at AS timestamptz)))
    ORDER BY k.slug, h.document_id
""")
_TITLES = text("SELECT id, title FROM documents WHERE id = ANY(:documents)")
# Everybody whom an allow rule on these resources could reach: the rules' subjects and all that belong to them.
_CANDIDATES = text("""
    WITH RECURSIVE asked AS (SELECT coalesce(CAST(:at AS timestamptz), now()) AS at),
    reached (kind, name) AS (
        SELECT g.subject_kind, g.subject FROM grants g, asked
        WHERE g.action = :action AND g.effect = 'allow'
          AND concat_ws(':', g.resource_kind, CASE WHEN g.resource_kind IN ('collection', 'label')
              THEN g.collection_id END, g.label, g.document_id) = ANY(:resources)
          AND g.granted_at <= asked.at AND (g.revoked_at IS NULL OR g.revoked_at > asked.at)
        UNION
        SELECT m.member_kind, m.member FROM reached r
        JOIN memberships m ON m.container_kind = r.kind AND m.container = r.name, asked
        WHERE m.granted_at <= asked.at AND (m.revoked_at IS NULL OR m.revoked_at > asked.at)
    )
    SELECT kind, name FROM reached ORDER BY kind, name
""")


@dataclass(frozen=True, slots=True)
class SeenDocument:
    """A document that could be searched. `title` only for who manages its collection."""

    id: UUID
    collection: str
    labels: tuple[str, ...]
    title: str | None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a subject could search, within the collections that the asker manages or audits."""

    subject: str
    policy_version: int
    collections: tuple[str, ...]
    documents: tuple[SeenDocument, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What a proposed rule would add and take away for a subject."""

    subject: str
    gained: tuple[SeenDocument, ...]
    lost: tuple[SeenDocument, ...]


@dataclass(frozen=True, slots=True)
class Searcher:
    """A principal, group or role that may do what was asked about."""

    kind: str
    name: str


async def preview(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    subject: Subject,
    at: datetime | None = None,
) -> Preview:
    """What `subject` could search, now or `at` a moment. Raises `Denied` to who neither manages nor audits anything."""
    manages = await authority.compile(transaction, by, Action.MANAGE)
    audits = await authority.compile(transaction, by, Action.AUDIT)
    insight = {**audits.collections, **manages.collections}
    if not insight:
        raise Denied
    loaded = await load(transaction, subject, Action.SEARCH, at=at)
    # The scope is looked at, never searched with: it is made out to who asks.
    scope = of_subject(by, Action.SEARCH, loaded, transaction.policy_version)
    values = {
        "at": at,
        "classes": scope.classes(),
        "collections": [part.id for slug, part in scope.collections.items() if slug in insight],
    }
    rows = (await transaction.connection.execute(_DOCUMENTS, values)).all()
    titles = await _titles(transaction, printer, by, [row.document_id for row in rows])
    return Preview(
        subject=subject.qualified,
        policy_version=transaction.policy_version,
        collections=tuple(sorted(scope.collections.keys() & insight.keys())),
        documents=tuple(
            SeenDocument(row.document_id, row.slug, tuple(row.labels), titles.get(row.document_id)) for row in rows
        ),
    )


async def _titles(
    transaction: Transaction, printer: TicketPrinter, by: Principal, documents: list[UUID]
) -> dict[UUID, str]:
    await printer.present(transaction, by, Action.MANAGE)
    rows = await transaction.connection.execute(_TITLES, {"documents": documents})
    return {row.id: row.title for row in rows}


async def proposed(
    transaction: Transaction,
    authority: Authority,
    printer: TicketPrinter,
    by: Principal,
    subject: Subject,
    wanted: NewGrant,
) -> Change:
    """What making `wanted` would change for `subject`. Only for a transaction that is taken back (a rehearsal).

    Raises as `grant` does: what may not be made may not be tried either.
    """
    before = await preview(transaction, authority, printer, by, subject)
    await grant(transaction, authority, printer, by, wanted)
    after = await preview(transaction, authority, printer, by, subject)
    had, has = ({document.id: document for document in one.documents} for one in (before, after))
    return Change(
        subject=subject.qualified,
        gained=tuple(document for id_, document in has.items() if id_ not in had),
        lost=tuple(document for id_, document in had.items() if id_ not in has),
    )


async def who(
    transaction: Transaction,
    authority: Authority,
    by: Principal,
    action: Action,
    target: Target,
    at: datetime | None = None,
) -> list[Searcher]:
    """Every principal, group and role that may do `action` on `target`. Raises as `explain` does.

    A principal whose groups only its token knows is covered by the group that is listed.
    """
    _, resources = await located(transaction, authority, by, target, at)
    values: dict[str, Any] = {"action": action.value, "resources": list(resources), "at": at}
    candidates = (await transaction.connection.execute(_CANDIDATES, values)).all()
    found = []
    for candidate in candidates:
        loaded = await load(transaction, Subject(candidate.kind, candidate.name), action, at=at)
        if permits(loaded.rules, action, resources):
            found.append(Searcher(candidate.kind, candidate.name))
    return found
