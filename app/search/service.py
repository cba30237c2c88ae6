"""A search, from the checked question to the fragments: one snapshot, in the order that the promises demand."""

import asyncio

from sqlalchemy import text

from app.analysis.embedder import Embedder
from app.analysis.floor import Floor
from app.analysis.terms import query_terms
from app.audit.log import CallLog
from app.authz.compile import Authority
from app.db.session import Database, Transaction
from app.db.tickets import TicketPrinter
from app.domain.access import AccessScope, Action
from app.domain.calls import Call
from app.domain.principal import Principal
from app.domain.search import SearchAnswer, SearchRequest
from app.errors import ConfigurationError, Denied, InsufficientScope, InvalidRequest
from app.search import candidates, fragments
from app.search.arguments import search_request
from app.search.candidates import Question

_EDITIONS = text("SELECT slug, corpus_version FROM collections WHERE id = ANY(:ids) ORDER BY slug")


class SearchService:
    """What every entrypoint calls to search."""

    def __init__(
        self,
        database: Database,
        authority: Authority,
        printer: TicketPrinter,
        calls: CallLog,
        embedder: Embedder,
        base_url: str,
    ) -> None:
        self._database = database
        self._authority = authority
        self._printer = printer
        self._calls = calls
        self._embedder = embedder
        self._floor = _floor(embedder)
        self._base_url = base_url

    async def search(self, call: Call, principal: Principal, arguments: object) -> SearchAnswer:
        """Search as `principal`. `arguments` are as the client sent them; `call` learns what the log needs.

        Raises `InvalidRequest`, `Denied`, `IndexUnavailable`, `Timeout`, `InternalError`.
        """
        request = search_request(arguments)
        call.collection = request.collection
        call.query_digest = self._calls.digest(request.query)
        question = await asyncio.to_thread(self._question, request.query)
        answer = await self._database.read(lambda snapshot: self._search(snapshot, call, principal, request, question))
        call.outcome = "ok" if answer.fragments else "empty"
        call.document_ids = tuple(dict.fromkeys(fragment.document_id for fragment in answer.fragments))
        call.chunk_ids = tuple(fragment.chunk_id for fragment in answer.fragments)
        call.corpus_versions = answer.corpus_versions
        return answer

    def _question(self, query: str) -> Question:
        try:
            return Question(self._embedder.query(query), query_terms(query))
        except ValueError as error:
            raise InvalidRequest("query", "holds nothing to read", allowed="words, in any language") from error

    async def _search(
        self, snapshot: Transaction, call: Call, principal: Principal, request: SearchRequest, question: Question
    ) -> SearchAnswer:
        scope = await self._authority.compile(snapshot, principal, Action.SEARCH)
        call.policy_version = scope.policy_version
        _refuse(scope, request.collection)
        ranked = await candidates.find(snapshot, scope, request.collection, question, self._floor, request.limit)
        found = await fragments.read(snapshot, scope, self._printer, ranked, self._base_url) if ranked else ()
        return SearchAnswer(found, await _editions(snapshot, scope, request.collection))


def _floor(embedder: Embedder) -> Floor:
    """The floor calibrated for exactly this model. Raises `NotConfigured`, `ConfigurationError`."""
    floor = Floor.load(embedder.name)
    if floor.revision != embedder.revision:
        raise ConfigurationError("The relevance floor was calibrated for another revision of the embedding model.")
    return floor


def _refuse(scope: AccessScope, collection: str | None) -> None:
    """Raise `Denied` for a collection outside the scope, existing or not, and for a scope that holds nothing."""
    if scope.collections and (collection is None or collection in scope.collections):
        return
    bounds = scope.principal.narrowing
    if bounds is not None and bounds.actions is not None and scope.action not in bounds.actions:
        raise InsufficientScope(scope.action)
    raise Denied


async def _editions(snapshot: Transaction, scope: AccessScope, collection: str | None) -> tuple[str, ...]:
    chosen = [part.id for slug, part in scope.collections.items() if collection in (None, slug)]
    rows = await snapshot.connection.execute(_EDITIONS, {"ids": chosen})
    return tuple(f"{row.slug}@{row.corpus_version}" for row in rows)
