"""`POST /search`, and the documents that a fragment cites."""

from collections.abc import Awaitable, Callable
from html import escape
from typing import Annotated, Any, TypeVar
from uuid import UUID

import msgspec
from litestar import Controller, MediaType, Request, Response, get, post
from litestar.params import Parameter

from app.db.session import Transaction
from app.domain.calls import Call
from app.domain.documents import PageSpan
from app.domain.principal import Principal
from app.entrypoints.envelope import answered
from app.entrypoints.http import ranges
from app.entrypoints.services import Services
from app.search.reading import Original, VersionCard, VersionText

# Hostile HTML or SVG in an original must not run in our origin, however it is opened.
INERT = {
    "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-store",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}
Opened = TypeVar("Opened", VersionCard, VersionText, Original)
Version = Annotated[int, Parameter(ge=1, le=2**31 - 1)]


class TextBody(msgspec.Struct):
    """The extracted text; every offset counts code points of `text`."""

    document_id: UUID
    version: int
    text: str
    pages: list[PageSpan]
    content_sha256: str


async def opened(
    services: Services, call: Call, document_id: UUID, work: Callable[[Transaction], Awaitable[Opened]]
) -> Opened:
    """Read something of a document, on the record of its collection too: its owner sees who opened what."""
    call.document_ids = (document_id,)

    async def read(snapshot: Transaction) -> Opened:
        found = await work(snapshot)
        call.collection = (found if isinstance(found, VersionCard) else found.card).collection
        return found

    return await services.calls.read(call, read)


class SearchController(Controller):
    """Searching."""

    path = "/api/v1/search"

    @post(status_code=200)
    async def search(self, services: Services, caller: Principal, call: Call, data: dict[str, Any]) -> dict[str, Any]:
        """Search the documents that the caller may read. The body and the answer are those of `search_documents`."""
        answer = await services.calls.serve(call, lambda: services.search.search(call, caller, data))
        return answered(call, answer)


class VersionController(Controller):
    """One edition of a document: its facts, text and original."""

    path = "/api/v1/documents/{document_id:uuid}/versions/{version:int}"

    @get()
    async def version(
        self, services: Services, caller: Principal, call: Call, document_id: UUID, version: Version
    ) -> VersionCard:
        """What is known of this edition."""
        key = (document_id, version)
        return await opened(
            services,
            call,
            document_id,
            lambda snapshot: services.reader.version(snapshot, caller, *key),
        )

    @get("/text")
    async def text(
        self, services: Services, caller: Principal, call: Call, document_id: UUID, version: Version
    ) -> TextBody:
        """The extracted text that fragments quote."""
        key = (document_id, version)
        found = await opened(services, call, document_id, lambda snapshot: services.reader.text(snapshot, caller, *key))
        return TextBody(document_id, version, found.text, list(found.pages), found.card.content_sha256)

    @get("/original", media_type=MediaType.TEXT)
    async def original(
        self,
        request: Request[Any, Any, Any],
        services: Services,
        caller: Principal,
        call: Call,
        document_id: UUID,
        version: Version,
    ) -> Response[bytes]:
        """The bytes as they were uploaded, or the part of them that a `Range` header names."""
        part = ranges.wanted(request.headers)
        found = await opened(
            services,
            call,
            document_id,
            lambda snapshot: services.reader.original(snapshot, caller, document_id, version, part),
        )
        return ranges.answer(found, INERT)


_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:1rem/1.6 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}}
pre{{white-space:pre-wrap;font:inherit}}mark{{background:#ffe58a}}</style>
<h1>{title}</h1><p>Version {version}, published {published}{superseded}</p>
<pre>{before}<mark id="cited">{cited}</mark>{after}</pre></html>"""


@get("/documents/{document_id:uuid}/versions/{version:int}", media_type=MediaType.HTML)
async def cited(
    services: Services,
    caller: Principal,
    call: Call,
    document_id: UUID,
    version: Version,
    start: Annotated[int, Parameter(ge=0)] = 0,
    end: Annotated[int, Parameter(ge=0)] = 0,
) -> Response[str]:
    """Where `source_uri` leads: the text of the cited version, with the cited place marked."""
    key = (document_id, version)
    found = await opened(services, call, document_id, lambda snapshot: services.reader.text(snapshot, caller, *key))
    shown = _PAGE.format(
        title=escape(found.card.title),
        version=version,
        published=f"{found.card.published_at:%Y-%m-%d}",
        superseded=" (superseded by a later edition)" if found.card.superseded else "",
        before=escape(found.text[:start]),
        cited=escape(found.text[start:end]),
        after=escape(found.text[max(start, end) :]),
    )
    return Response(shown, media_type=MediaType.HTML, headers=INERT)
