"""Personal access tokens: shown once, stored as a hash, looked up by id and compared in constant time."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text

from app.db.session import Transaction
from app.domain.access import Action
from app.domain.principal import LOCAL_ISSUER, Narrowing, Principal, is_local_subject
from app.errors import InvalidRequest, NotFound, Unauthenticated

UNBOUNDED = Narrowing()
_FORM = re.compile(r"stk_([a-z0-9]{16})_([A-Za-z0-9_-]{43})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_NOBODY = hashlib.sha256(b"nobody").digest()

_READ = text("""
    SELECT secret_sha256, subject, actor, actions, collections, expires_at,
           revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AS valid
    FROM tokens WHERE id = :id
""")
_INSERT = text("""
    INSERT INTO tokens (id, secret_sha256, subject, actor, name, actions, collections, created_by, expires_at)
    VALUES (:id, :hash, :subject, :actor, :name, :actions, :collections, :created_by, :expires_at)
""")
_LIST = text("""
    SELECT id, subject, actor, name, actions, collections, created_at, expires_at, revoked_at FROM tokens
    WHERE (CAST(:subject AS text) IS NULL OR subject = :subject) AND id > :after ORDER BY id LIMIT :limit
""")
_REVOKE = text("""
    UPDATE tokens SET revoked_at = now(), revoked_by = :by
    WHERE id = :id AND revoked_at IS NULL AND (CAST(:subject AS text) IS NULL OR subject = :subject)
""")


@dataclass(frozen=True, slots=True)
class NewToken:
    """What a token is to be. `actor` names the agent that will hold it for the person `subject`."""

    subject: str
    name: str
    actor: str | None = None
    bounds: Narrowing = UNBOUNDED


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token's id, and the secret that is shown this once."""

    id: str
    token: str


def looks_like_token(credential: str) -> bool:
    """Whether `credential` has the form of a personal access token."""
    return _FORM.fullmatch(credential) is not None


async def authenticate(transaction: Transaction, credential: str) -> Principal:
    """The principal that holds `credential`. Raises `Unauthenticated`, the same for every reason."""
    form = _FORM.fullmatch(credential)
    row = form and (await transaction.connection.execute(_READ, {"id": form[1]})).one_or_none()
    presented = hashlib.sha256(form[2].encode() if form else b"").digest()
    known = hmac.compare_digest(presented, bytes(row.secret_sha256) if row else _NOBODY)
    if not (row and known and row.valid):
        raise Unauthenticated
    return _holder(row)


def _holder(row: Row[Any]) -> Principal:
    bounds = Narrowing(
        actions=None if row.actions is None else frozenset(map(Action, row.actions)),
        collections=None if row.collections is None else frozenset(row.collections),
        expires_at=row.expires_at,
    )
    actor = Principal(LOCAL_ISSUER, row.actor) if row.actor else None
    return Principal(LOCAL_ISSUER, row.subject, actor=actor, narrowing=None if bounds == UNBOUNDED else bounds)


async def issue(transaction: Transaction, wanted: NewToken, issuer: Principal) -> IssuedToken:
    """Make a token. Raises `InvalidRequest` where it would be wider than the token it was asked with.

    Whether `issuer` may make one for that subject is the caller's to check.
    """
    for field, subject in (("subject", wanted.subject), ("actor", wanted.actor)):
        if subject is not None and not is_local_subject(subject):
            raise InvalidRequest(field, "not a subject", allowed="1..128 letters, digits and ._@:+-")
    if issuer.narrowing is not None and not issuer.narrowing.covers(wanted.bounds):
        raise InvalidRequest("token", "wider than the one it is made with", allowed="the same or narrower bounds")
    id_ = "".join(secrets.choice(_ALPHABET) for _ in range(16))
    secret = secrets.token_urlsafe(32)
    bounds = wanted.bounds
    await transaction.connection.execute(
        _INSERT,
        {
            "id": id_,
            "hash": hashlib.sha256(secret.encode()).digest(),
            "subject": wanted.subject,
            "actor": wanted.actor,
            "name": wanted.name,
            "actions": None if bounds.actions is None else sorted(bounds.actions),
            "collections": None if bounds.collections is None else sorted(bounds.collections),
            "created_by": issuer.key,
            "expires_at": bounds.expires_at,
        },
    )
    return IssuedToken(id_, f"stk_{id_}_{secret}")


@dataclass(frozen=True, slots=True)
class TokenCard:
    """A token as it is listed: everything but its secret."""

    id: str
    subject: str
    actor: str | None
    name: str
    actions: list[str] | None
    collections: list[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


async def listed(transaction: Transaction, subject: str | None, *, after: str, limit: int) -> list[TokenCard]:
    """The tokens of one subject, or of everybody for `None`, by id."""
    rows = await transaction.connection.execute(_LIST, {"subject": subject, "after": after, "limit": limit})
    return [TokenCard(*row) for row in rows]


async def revoke(transaction: Transaction, id_: str, *, by: Principal, subject: str | None) -> None:
    """Revoke a token of `subject` (of anybody for `None`). Raises `NotFound` when there is none in force."""
    done = await transaction.connection.execute(_REVOKE, {"id": id_, "by": by.key, "subject": subject})
    if done.rowcount != 1:
        raise NotFound
