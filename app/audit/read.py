"""Reading the call log: an auditor reads all of it, an owner the calls on its collections."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text

from app.authz.compile import Authority
from app.db.session import Transaction
from app.domain.access import AccessScope, Action
from app.domain.principal import Principal
from app.errors import Denied

# An auditor reads rows as they are. An owner reads the calls that named or searched its collections, and of their
# ids and editions only its own: a search over several collections is not a way to learn of the others.
_ROWS = """
    SELECT call_id, at, principal, actor, entrypoint, operation, collection, outcome,
           CASE WHEN :all THEN corpus_versions ELSE ARRAY(
               SELECT v FROM unnest(corpus_versions) v WHERE split_part(v, '@', 1) = ANY(:slugs)) END,
           policy_version,
           CASE WHEN :all THEN document_ids ELSE ARRAY(
               SELECT d FROM unnest(document_ids) d WHERE EXISTS (
                   SELECT FROM chunk_index i WHERE i.document_id = d AND i.class_id = ANY(:classes))) END,
           CASE WHEN :all THEN chunk_ids ELSE ARRAY(
               SELECT c FROM unnest(chunk_ids) c WHERE EXISTS (
                   SELECT FROM chunk_index i WHERE i.chunk_id = c AND i.class_id = ANY(:classes))) END,
           latency_ms, query_digest
    FROM calls
    WHERE (:all OR collection = ANY(:slugs)
           OR EXISTS (SELECT FROM unnest(corpus_versions) v WHERE split_part(v, '@', 1) = ANY(:slugs)))
"""
_PAGE = text(
    _ROWS
    + """
    AND (at, call_id) < (:at, :call_id) AND (CAST(:outcome AS text) IS NULL OR outcome = :outcome)
    ORDER BY at DESC, call_id DESC LIMIT :limit
"""
)
_ONE = text(_ROWS + " AND call_id = :call_id")


class Place(NamedTuple):
    """A place in the log. The number of a row would tell an owner how many calls others make."""

    at: datetime
    call_id: UUID


NEWEST = Place(datetime(9999, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One row of the log."""

    call_id: UUID
    at: datetime
    principal: str | None
    actor: str | None
    entrypoint: str
    operation: str
    collection: str | None
    outcome: str
    corpus_versions: list[str]
    policy_version: int | None
    document_ids: list[UUID]
    chunk_ids: list[UUID]
    latency_ms: float
    query_digest: str | None


async def reach(transaction: Transaction, authority: Authority, by: Principal) -> AccessScope:
    """The calls that `by` may read, as a scope for the functions below. Raises `Denied` where there are none."""
    scope = await authority.compile(transaction, by, Action.AUDIT)
    if not (scope.system or scope.collections):
        raise Denied
    return scope


async def page(
    transaction: Transaction, scope: AccessScope, *, limit: int, before: Place = NEWEST, outcome: str | None = None
) -> list[CallRecord]:
    """Calls that `scope` (for the action `audit`) covers, newest first."""
    values = {**_reach(scope), "limit": limit, **before._asdict(), "outcome": outcome}
    return [CallRecord(*row) for row in await transaction.connection.execute(_PAGE, values)]


async def one(transaction: Transaction, scope: AccessScope, call_id: UUID) -> CallRecord | None:
    """One call, if `scope` covers it."""
    row = (await transaction.connection.execute(_ONE, {**_reach(scope), "call_id": call_id})).one_or_none()
    return None if row is None else CallRecord(*row)


def _reach(scope: AccessScope) -> dict[str, object]:
    return {"all": scope.system, "slugs": list(scope.collections), "classes": scope.classes()}
