"""An issuer's public keys: fetched, kept, fetched again when a token names one that is not known (RFC 7517)."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from app.errors import IssuerUnavailable
from app.identity.issuers import Issuer, is_fetchable

FETCH_SECONDS = 5.0
ANSWER_MAX = 1 << 20  # bytes
REFRESH_SECONDS = 3600.0  # a key that the issuer has withdrawn is trusted no longer than this while it answers,
STALE_SECONDS = 86400.0  # and no longer than this while it does not
REST_SECONDS = 10.0  # between two fetches, however many tokens name unknown keys
_DISCOVERY = (".well-known/openid-configuration", ".well-known/oauth-authorization-server")


class KeyRing:
    """The keys of one issuer, for one process."""

    def __init__(self, issuer: Issuer, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._lock = asyncio.Lock()  # one fetch at a time, and those who wait for it use what it brought
        self._keys: KeySet | None = None
        self._fetched = self._tried = float("-inf")

    async def keys(self, *, unknown: KeySet | None = None) -> KeySet:
        """The keys; when those of `unknown` did not do, fetched again if the last try is long enough ago.

        Raises `IssuerUnavailable` when there are none that may still be trusted.
        """
        async with self._lock:
            if self._wanted(unknown):
                await self._refresh()
            if self._keys is None or self._clock() - self._fetched > STALE_SECONDS:
                raise IssuerUnavailable
            return self._keys

    def _wanted(self, unknown: KeySet | None) -> bool:
        if self._clock() - self._tried < REST_SECONDS:
            return False
        missing = self._keys is None or (unknown is not None and unknown is self._keys)
        return missing or self._clock() - self._fetched > REFRESH_SECONDS

    async def _refresh(self) -> None:
        """Fetch the keys; those there are stay when the issuer cannot answer."""
        self._tried = self._clock()
        try:
            async with asyncio.timeout(FETCH_SECONDS), _client() as client:
                uri = self._issuer.jwks_uri or await self._discovered(client)
                self._keys = KeySet.import_key_set(await _json(client, uri))
        except (httpx.HTTPError, TimeoutError, JoseError, ValueError, KeyError, TypeError):
            return
        self._fetched = self._clock()

    async def _discovered(self, client: httpx.AsyncClient) -> str:
        """The address of the keys, from the issuer's own metadata (OpenID Connect Discovery, RFC 8414)."""
        for path in _DISCOVERY:
            try:
                found = await _json(client, f"{self._issuer.issuer.rstrip('/')}/{path}")
            except httpx.HTTPStatusError:
                continue
            if found["issuer"] == self._issuer.issuer and is_fetchable(found["jwks_uri"]):
                return str(found["jwks_uri"])
        raise ValueError


def _client() -> httpx.AsyncClient:
    # The answer decides whom we believe: no proxy and no redirect may choose where it comes from.
    return httpx.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False, trust_env=False)


async def _json(client: httpx.AsyncClient, url: str) -> Any:
    body = b""
    async with client.stream("GET", url, headers={"accept": "application/json"}) as response:
        if response.status_code != httpx.codes.OK:
            raise httpx.HTTPStatusError("not found", request=response.request, response=response)
        async for part in response.aiter_bytes():
            body += part
            if len(body) > ANSWER_MAX:
                raise ValueError
    return json.loads(body)
