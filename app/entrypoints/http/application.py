"""The HTTP application: routes, the caller of each, and the one place where errors become answers."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from litestar import Litestar, Router, asgi
from litestar.config.allowed_hosts import AllowedHostsConfig
from litestar.datastructures import ResponseHeader, State
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, Receive, Scope, Send

from app.entrypoints.http import (
    access,
    auditing,
    collecting,
    editions,
    grouping,
    operating,
    problems,
    ruling,
    searching,
    working,
)
from app.entrypoints.http.caller import (
    PUBLIC,
    provide_call,
    provide_caller,
    provide_services,
    require_caller,
    write_down,
)
from app.entrypoints.services import Services
from app.errors import StacksError

ROUTES: tuple[Any, ...] = (
    searching.SearchController,
    searching.VersionController,
    searching.cited,
    collecting.CollectionController,
    collecting.DocumentController,
    working.JobController,
    working.listed,
    editions.EditionController,
    editions.PurgeController,
    ruling.RoleController,
    ruling.GrantController,
    ruling.TokenController,
    grouping.GroupController,
    access.AccessController,
    auditing.CallController,
    operating.live,
    operating.ready,
    operating.metrics,
    operating.protected_resource,
)
MULTIPART_OVERHEAD = 1 << 20


def create(
    services: Services,
    mcp: ASGIApp,
    resource_metadata: str,
    lifespans: Sequence[Callable[[Litestar], AbstractAsyncContextManager[None]]],
) -> Litestar:
    """Build the application around `services`, with `mcp` mounted at `/mcp`."""

    @asgi("/mcp", copy_scope=True, opt={PUBLIC: True})  # the guard of its own asks for the credential
    async def mcp_endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        await mcp(scope, receive, send)

    return Litestar(
        [*ROUTES, mcp_endpoint],
        dependencies={
            "services": Provide(provide_services, sync_to_thread=False),
            "caller": Provide(provide_caller, sync_to_thread=False),
            "call": Provide(provide_call, sync_to_thread=False),
        },
        guards=[require_caller],
        after_exception=[write_down],
        exception_handlers={
            StacksError: problems.of_ours,
            HTTPException: problems.of_litestar,
            **dict.fromkeys(problems.UNREADABLE, problems.of_unreadable),
            Exception: problems.of_bugs,
        },
        response_headers=[ResponseHeader(name=name, value=value) for name, value in problems.HEADERS.items()],
        state=State({"services": services, "resource_metadata": resource_metadata}),
        lifespan=list(lifespans),
        allowed_hosts=AllowedHostsConfig(allowed_hosts=list(services.allowed_hosts), www_redirect=False),
        openapi_config=_openapi(services.version),
        request_max_body_size=services.upload_max + MULTIPART_OVERHEAD,
        logging_config=None,
        debug=False,
    )


def _openapi(version: str) -> OpenAPIConfig:
    bearer = SecurityScheme(type="http", scheme="bearer", description="A personal access token, stk_…")
    return OpenAPIConfig(
        title="Closed Stacks",
        version=version,
        openapi_router=Router("/schema", route_handlers=[], opt={PUBLIC: True}),
        # The document alone: the pages that could show it load other people's programs from the network.
        render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"])],
        components=Components(security_schemes={"bearer": bearer}),
        security=[{"bearer": []}],
    )
