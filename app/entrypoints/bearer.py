"""The credential of a request: exactly one bearer token in the Authorization header, or none."""

from collections.abc import Iterable

from app.errors import InvalidRequest, Unauthenticated

CREDENTIAL_MAX = 8192


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The bearer token of raw ASGI headers.

    Raises `Unauthenticated` for none, another scheme or a monstrous one, `InvalidRequest` for more than one.
    """
    given = [value for name, value in headers if name.lower() == b"authorization"]
    if len(given) > 1:
        raise InvalidRequest("Authorization", "given more than once", allowed="exactly one Bearer token")
    scheme, _, credential = (given[0] if given else b"").partition(b" ")
    if scheme.lower() != b"bearer" or not 0 < len(credential.strip()) <= CREDENTIAL_MAX:
        raise Unauthenticated
    return credential.strip().decode("latin-1")


def challenge(resource_metadata: str, *, presented: bool) -> str:
    """The `WWW-Authenticate` value (RFC 6750, RFC 9728); with no credential presented it names no error."""
    error = 'error="invalid_token", ' if presented else ""
    return f'Bearer {error}resource_metadata="{resource_metadata}"'


def scope_challenge(resource_metadata: str, action: str) -> str:
    """The challenge to a token that was narrowed to other actions."""
    return f'Bearer error="insufficient_scope", scope="{action}", resource_metadata="{resource_metadata}"'
