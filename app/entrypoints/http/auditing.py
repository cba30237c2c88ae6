"""The call log, for auditors and owners."""

from datetime import datetime
from uuid import UUID

from litestar import Controller, get

from app.audit import read
from app.audit.read import NEWEST, CallRecord, Place
from app.db.session import Transaction
from app.domain.access import AccessScope, Action
from app.domain.calls import Call
from app.domain.principal import Principal
from app.entrypoints.http.paging import LIMIT_DEFAULT, Page, after, limit_of, page
from app.entrypoints.services import Services
from app.errors import Denied, NotFound


class CallController(Controller):
    """Calls."""

    path = "/api/v1/calls"

    @get()
    async def listed(
        self,
        services: Services,
        caller: Principal,
        call: Call,
        limit: int = LIMIT_DEFAULT,
        cursor: str | None = None,
        outcome: str | None = None,
    ) -> Page[CallRecord]:
        """Calls, newest first: all of them for an auditor, those on its collections for an owner."""
        before = after(cursor, _place, NEWEST)

        async def read_page(snapshot: Transaction) -> list[CallRecord]:
            scope = await _audit_scope(services, snapshot, caller)
            return await read.page(snapshot, scope, limit=limit_of(limit) + 1, before=before, outcome=outcome)

        return page(
            await services.calls.read(call, read_page),
            limit,
            lambda record: f"{record.at.isoformat()} {record.call_id}",
        )

    @get("/{call_id:uuid}")
    async def shown(self, services: Services, caller: Principal, call: Call, call_id: UUID) -> CallRecord:
        """One call."""

        async def read_one(snapshot: Transaction) -> CallRecord:
            found = await read.one(snapshot, await _audit_scope(services, snapshot, caller), call_id)
            if found is None:
                raise NotFound
            return found

        return await services.calls.read(call, read_one)


async def _audit_scope(services: Services, snapshot: Transaction, caller: Principal) -> AccessScope:
    scope = await services.authority.compile(snapshot, caller, Action.AUDIT)
    if not (scope.system or scope.collections):
        raise Denied
    return scope


def _cursor(record: CallRecord) -> str:
    return f"{record.at.isoformat()} {record.call_id}"


def _place(cursor: str) -> Place:
    at, _, call_id = cursor.partition(" ")
    return Place(datetime.fromisoformat(at), UUID(call_id))
