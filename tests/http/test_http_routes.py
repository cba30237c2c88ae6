"""Every route, walked: what is not on the list of public ones asks for a token. A new route cannot escape."""

import re
from collections.abc import Iterator

import pytest
from litestar import Litestar
from support.api import NOWHERE, Api

from app.entrypoints.http.application import create
from app.entrypoints.services import Services

PUBLIC = {
    "/health/live",
    "/health/ready",
    "/metrics",
    "/schema",
    "/schema/openapi.json",
    "/schema/handbook",  # 404, whatever the name
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
}
SAMPLES = {"uuid": NOWHERE, "int": "1", "str": "handbook"}


@pytest.fixture
def application(services: Services) -> Litestar:
    async def mcp(*_: object) -> None:
        raise AssertionError("never called")

    return create(services, mcp, "http://127.0.0.1/metadata", [])


def _routes(application: Litestar) -> Iterator[tuple[str, str]]:
    for route in application.routes:
        path = re.sub(r"\{[^:}]+:(\w+)\}", lambda match: SAMPLES[match[1]], route.path)
        for method in sorted(getattr(route, "methods", ("POST",))):
            yield method, path


def test_every_route_but_the_public_ones_asks_for_a_token(application: Litestar, api: Api) -> None:
    walked = list(_routes(application))
    open_ = {path for method, path in walked if api(None, method, path, root="").status_code != 401}

    assert open_ == PUBLIC
    assert len(walked) > 50


def test_every_route_but_the_public_ones_refuses_a_wrong_token(application: Litestar, api: Api) -> None:
    forged = api.tokens["owner"][:-1] + ("A" if api.tokens["owner"][-1] != "A" else "B")
    for method, path in _routes(application):
        answer = api(forged, method, path, root="")
        assert answer.status_code == 401 or path in PUBLIC, (method, path, answer.status_code)


def test_what_is_public_says_nothing_of_the_corpus(api: Api) -> None:
    for path in PUBLIC:
        text = api(None, "GET", path, root="").text
        assert not any(secret in text for secret in ("handbook", "board@", "Travel", "salary", *api.tokens.values()))


def test_the_schema_is_a_document_and_loads_nothing(api: Api) -> None:
    answer = api(None, "GET", "/schema", root="")

    assert answer.headers["content-type"].startswith("application/vnd.oai.openapi+json")
    assert "http" not in answer.text.replace("http_", "").replace('"http"', "")


def test_the_resource_metadata_names_the_resource(api: Api) -> None:
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        assert api(None, "GET", path, root="").json()["resource"] == api.server.mcp_url


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/calls?principal=owner", "cursor, limit, outcome"),
        ("/collections?limit=5&colour=red", "cursor, limit"),
        ("/tokens?Subject=owner", "cursor, limit"),
        ("/collections/handbook?fields=all", "none here"),
        ("/calls?self=1", "cursor, limit, outcome"),
        ("/calls?caller=1", "cursor, limit, outcome"),
    ],
)
def test_a_query_parameter_that_is_not_known_is_refused(api: Api, path: str, allowed: str) -> None:
    answer = api("admin", "GET", path)

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert answer.json()["allowed"].startswith(allowed)
    assert api(None, "GET", path).status_code == 401
