"""Granting and revoking. Nobody grants what they may not manage; every rule says who made it and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from app.authz import classes
from app.authz.check import require
from app.authz.compile import Authority
from app.db.session import Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import GRANTABLE, LABEL, Action, Effect, ScopedCollection
from app.domain.principal import Principal, is_principal_key
from app.errors import InvalidRequest, NotFound

_INSERT = text("""
    INSERT INTO grants (subject_kind, subject, action, effect, resource_kind, collection_id, label, document_id,
                        valid_from, valid_until, reason, granted_by)
    VALUES (:subject_kind, :subject, :action, :effect, :resource_kind, :collection, :label, :document,
            coalesce(CAST(:valid_from AS timestamptz), now()), :valid_until, :reason, :by)
    RETURNING id
""")
_READ = """
    SELECT g.id, g.subject_kind, g.subject, g.action, g.effect, k.slug, g.label, g.document_id, g.valid_from,
           g.valid_until, g.reason, g.granted_by, g.granted_at, g.revoked_by, g.revoked_at
    FROM grants g JOIN collections k ON k.id = g.collection_id
"""
_ONE = text(_READ + " WHERE g.id = :id")
_PAGE = text(_READ + " WHERE g.collection_id = ANY(:collections) AND g.id > :after ORDER BY g.id LIMIT :limit")
_REVOKE = text("UPDATE grants SET revoked_at = now(), revoked_by = :by WHERE id = :id AND revoked_at IS NULL")
# Who managed one label could make rules on the rest, and who audited one would read of the others.
_OF_THE_WHOLE = (Action.MANAGE, Action.AUDIT)
_ROLE = text("SELECT FROM roles WHERE name = :name")


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A rule to be made: exactly one of `role` and `principal`, at most one of `label` and `document`."""

    action: str
    collection: str
    effect: str = "allow"
    role: str | None = None
    principal: str | None = None
    label: str | None = None
    document: UUID | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GrantCard:
    """A rule as it is shown; revoked ones stay readable."""

    id: UUID
    role: str | None
    principal: str | None
    action: str
    effect: str
    collection: str
    label: str | None
    document: UUID | None
    valid_from: datetime
    valid_until: datetime | None
    reason: str
    granted_by: str
    granted_at: datetime
    revoked_by: str | None
    revoked_at: datetime | None


async def grant(
    transaction: Transaction, authority: Authority, printer: TicketPrinter, by: Principal, wanted: NewGrant
) -> GrantCard:
    """Make a rule. A document that gets its first rule of its own moves to a class of its own, with it.

    Raises `InvalidRequest`, and `NotFound` or `Denied` where `by` may not manage the collection.
    """
    action, effect = _checked(wanted)
    collection = await require(authority, transaction, by, Action.MANAGE, wanted.collection)
    await _require_role(transaction, wanted.role)
    if wanted.document is not None:
        await _set_apart(transaction, printer, by, collection, wanted.document)
    values = {
        "subject_kind": "role" if wanted.role else "principal",
        "subject": wanted.role or wanted.principal,
        "action": action.value,
        "effect": effect.value,
        "resource_kind": "document" if wanted.document else "label" if wanted.label else "collection",
        "collection": collection.id,
        "label": wanted.label,
        "document": wanted.document,
        "valid_from": wanted.valid_from,
        "valid_until": wanted.valid_until,
        "reason": wanted.reason,
        "by": by.key,
    }
    id_ = (await transaction.connection.execute(_INSERT, values)).scalar_one()
    return _card((await transaction.connection.execute(_ONE, {"id": id_})).one())


def _checked(wanted: NewGrant) -> tuple[Action, Effect]:
    if wanted.action not in GRANTABLE:
        raise InvalidRequest("action", "not an action", allowed=", ".join(GRANTABLE))
    if wanted.effect not in tuple(Effect):
        raise InvalidRequest("effect", "not an effect", allowed=", ".join(Effect))
    if (wanted.role is None) == (wanted.principal is None):
        raise InvalidRequest("role", "give a role or a principal", allowed="exactly one of role and principal")
    if wanted.principal is not None and not is_principal_key(wanted.principal):
        raise InvalidRequest("principal", "not a principal", allowed="a local subject, or issuer|subject")
    part = "label" if wanted.label is not None else "document" if wanted.document is not None else None
    if part and wanted.action in _OF_THE_WHOLE:
        raise InvalidRequest(part, f"no part can be given to {wanted.action}", allowed="none: a whole collection")
    if wanted.label is not None and LABEL.fullmatch(wanted.label) is None:
        # A rule on a label that no document can have would do nothing, and look as if it did.
        raise InvalidRequest("label", "not an access label", allowed="1..63 of a-z, 0-9, . _ -")
    if wanted.label is not None and wanted.document is not None:
        raise InvalidRequest("label", "given together with a document", allowed="at most one of label and document")
    if wanted.valid_until and wanted.valid_until <= (wanted.valid_from or datetime.now(wanted.valid_until.tzinfo)):
        raise InvalidRequest("valid_until", "not after the start", allowed="a moment after valid_from and now")
    return Action(wanted.action), Effect(wanted.effect)


async def _require_role(transaction: Transaction, role: str | None) -> None:
    if role is not None and (await transaction.connection.execute(_ROLE, {"name": role})).first() is None:
        raise InvalidRequest("role", "no such role", allowed="a role that exists; POST /api/v1/roles makes one")


async def _set_apart(
    transaction: Transaction, printer: TicketPrinter, by: Principal, collection: ScopedCollection, document: UUID
) -> None:
    """Put a document into a class of its own. Raises `NotFound` unless `by` manages it, within that collection."""
    await printer.present(transaction, by, Action.MANAGE)
    present = await classes.held(transaction, document)
    if present is None or present.collection_id != collection.id:
        raise NotFound
    await classes.move(
        transaction, document, await classes.ensure(transaction, collection.id, present.labels, document)
    )


async def revoke(transaction: Transaction, authority: Authority, by: Principal, id_: UUID) -> GrantCard:
    """End a rule now; its row stays. Raises `NotFound` unless `by` may manage its collection and it is in force."""
    row = (await transaction.connection.execute(_ONE, {"id": id_})).one_or_none()
    manageable = await authority.compile(transaction, by, Action.MANAGE)
    if row is None or row.slug not in manageable.collections:
        raise NotFound
    done = await transaction.connection.execute(_REVOKE, {"id": id_, "by": by.key})
    if done.rowcount != 1:
        raise NotFound
    return _card((await transaction.connection.execute(_ONE, {"id": id_})).one())


async def listed(
    transaction: Transaction, authority: Authority, by: Principal, *, after: UUID, limit: int
) -> list[GrantCard]:
    """The rules on the collections that `by` may manage, revoked ones among them, by id."""
    scope = await authority.compile(transaction, by, Action.MANAGE)
    ids = [part.id for part in scope.collections.values()]
    rows = await transaction.connection.execute(_PAGE, {"collections": ids, "after": after, "limit": limit})
    return [_card(row) for row in rows]


def _card(row: Any) -> GrantCard:
    id_, kind, subject, *rest = row
    return GrantCard(id_, subject if kind == "role" else None, subject if kind == "principal" else None, *rest)
