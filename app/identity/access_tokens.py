"""JWT access tokens (RFC 9068): whose, for whom, and no further than its scopes."""

import base64
import binascii
import json
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwt import JWTClaimsRegistry, Token

from app.domain.principal import Narrowing, Principal, is_principal_key, principal_key
from app.errors import Unauthenticated
from app.identity.issuers import Issuer
from app.identity.keys import KeyRing

# Asymmetric only: with a shared secret whoever can check a token could make one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
_TYPES = ("at+jwt", "application/at+jwt")  # an ID token is for the client that asked, and opens nothing
LEEWAY_SECONDS = 30
GROUPS_MAX = 1000


class AccessTokens:
    """Checks the access tokens of the configured issuers."""

    def __init__(
        self, issuers: Iterable[Issuer], resource: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`resource` is the audience that tokens must name; `clock` (seconds) says when keys are old."""
        self._issuers = {one.issuer: (one, KeyRing(one, clock=clock)) for one in issuers}
        self._resource = resource

    @property
    def issuers(self) -> tuple[Issuer, ...]:
        """The issuers whose tokens are taken."""
        return tuple(issuer for issuer, _ in self._issuers.values())

    async def authenticate(self, credential: str) -> Principal:
        """The principal of a token. Raises `Unauthenticated`, the same for every reason, and `IssuerUnavailable`."""
        issuer, ring = self._issuers.get(_claimed_issuer(credential), (None, None))
        if issuer is None or ring is None:
            raise Unauthenticated
        try:
            token = await _decoded(credential, ring)
            if str(token.header.get("typ", "")).lower() not in _TYPES:
                raise Unauthenticated
            self._registry(issuer).validate(token.claims)
            return _principal(issuer, token.claims)
        except (JoseError, ValueError, TypeError, KeyError, OverflowError) as error:
            raise Unauthenticated from error

    def _registry(self, issuer: Issuer) -> JWTClaimsRegistry:
        return JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer.issuer},
            aud={"essential": True, "value": issuer.audience or self._resource},
            exp={"essential": True},
            sub={"essential": True},
        )


def _claimed_issuer(credential: str) -> str:
    """The issuer that a token names, before anything is proved: it only says whose keys to ask."""
    try:
        header, claims, signature = credential.split(".")
        named = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["iss"]
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error):
        return ""
    return named if isinstance(named, str) and header and signature else ""


async def _decoded(credential: str, ring: KeyRing) -> Token:
    keys = await ring.keys()
    try:
        return jwt.decode(credential, keys, algorithms=ALGORITHMS)
    except InvalidKeyIdError:
        return jwt.decode(credential, await ring.keys(unknown=keys), algorithms=ALGORITHMS)


def _principal(issuer: Issuer, claims: Mapping[str, Any]) -> Principal:
    """Raises `ValueError` for claims that cannot be understood: half of what an issuer says is not what it says."""
    scopes = claims.get("scope", "")
    if not isinstance(scopes, str):
        raise ValueError
    opened = frozenset(action for scope in scopes.split() for action in issuer.scopes.get(scope, ()))
    return Principal(
        issuer.issuer,
        _name(issuer, claims["sub"]),
        groups=_groups(issuer, claims),
        actor=_actor(issuer, claims.get("act")),
        narrowing=Narrowing(actions=opened, expires_at=datetime.fromtimestamp(int(claims["exp"]), UTC)),
    )


def _actor(issuer: Issuer, act: Any) -> Principal | None:
    """Who acts for the subject: the outermost `act` alone, whatever history it carries inside (RFC 8693, 4.1)."""
    if act is None:
        return None
    if not isinstance(act, dict) or act.get("iss", issuer.issuer) != issuer.issuer:
        raise ValueError
    return Principal(issuer.issuer, _name(issuer, act["sub"]), groups=_groups(issuer, act))


def _groups(issuer: Issuer, claims: Mapping[str, Any]) -> frozenset[str]:
    # Some providers leave the groups of a member of many out, and say so here. A rule may deny one of them.
    if issuer.groups_claim in claims.get("_claim_names", {}):
        raise ValueError
    given = claims.get(issuer.groups_claim, [])
    if not isinstance(given, list) or len(given) > GROUPS_MAX:
        raise ValueError
    return frozenset(_name(issuer, group) for group in given)


def _name(issuer: Issuer, given: Any) -> str:
    if not isinstance(given, str) or not given.isprintable():
        raise ValueError
    if not is_principal_key(principal_key(issuer.issuer, given)):
        raise ValueError
    return given
