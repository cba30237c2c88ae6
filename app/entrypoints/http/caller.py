"""What every handler is given: who calls, and a call to be written down."""

from typing import Any

from litestar import Request

from app.domain.calls import Call, Entrypoint
from app.domain.principal import Principal
from app.entrypoints.bearer import bearer
from app.entrypoints.services import Services
from app.identity import tokens


def provide_services(request: Request[Any, Any, Any]) -> Services:
    """The parts of this instance."""
    services: Services = request.app.state.services
    return services


async def provide_caller(request: Request[Any, Any, Any], services: Services) -> Principal:
    """The principal that the request's bearer token proves. Raises `Unauthenticated`, `IndexUnavailable`."""
    credential = bearer(request.scope["headers"])
    return await services.database.read(lambda transaction: tokens.authenticate(transaction, credential))


async def provide_call(request: Request[Any, Any, Any], caller: Principal) -> Call:
    """A call for this request: its operation is the method and the route's template, never the path as sent."""
    return Call(Entrypoint.HTTP, f"{request.method} {request.scope['path_template']}", caller)
