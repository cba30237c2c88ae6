"""Health, metrics and the metadata that a client without a token may read."""

from typing import Any

from litestar import MediaType, Request, Response, get
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from app.domain.access import Action
from app.entrypoints.http.caller import PUBLIC
from app.entrypoints.services import Services
from app.errors import StacksError

OPEN = {PUBLIC: True}


@get("/health/live", media_type=MediaType.JSON, opt=OPEN, security=[{}])
async def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@get("/health/ready", media_type=MediaType.JSON, opt=OPEN, security=[{}])
async def ready(services: Services) -> Response[dict[str, str]]:
    """The database answers, and its login is one that row-level security binds."""
    try:
        await services.database.check_login()
    except StacksError as fault:  # by its code alone: what is wrong with a login is nobody's business out there
        return Response({"status": fault.code}, status_code=503)
    return Response({"status": "ok"})


@get("/metrics", media_type=MediaType.TEXT, opt=OPEN, security=[{}])
async def metrics() -> Response[bytes]:
    """Prometheus metrics of this process."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


@get(
    ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"],
    opt=OPEN,
    security=[{}],
)
async def protected_resource(request: Request[Any, Any, Any], services: Services) -> dict[str, Any]:
    """RFC 9728 metadata of the resource `/mcp`."""
    issuers = services.credentials.access_tokens.issuers
    return {
        "resource": f"{services.base_url}/mcp",
        "resource_name": "Closed Stacks",
        "authorization_servers": [issuer.issuer for issuer in issuers],
        "bearer_methods_supported": ["header"],
        "scopes_supported": sorted({scope for issuer in issuers for scope, opens in issuer.scopes.items() if opens})
        or [Action.SEARCH],
    }
