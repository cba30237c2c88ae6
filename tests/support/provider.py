"""An identity provider on a port of its own: metadata, public keys that can be changed, tokens signed by any key."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

METADATA = "/.well-known/openid-configuration"


class Provider:
    """Signs as an issuer does. `key` is the present one; `up` says whether it answers; `fetches` counts its answers."""

    def __init__(self) -> None:
        self.up = True
        self.fetches = 0
        self.key: RSAKey | ECKey = RSAKey.generate_key(2048, {"kid": "first"})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def issuer(self) -> str:
        """Its name, which is where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["Provider"]:
        """Answer for as long as the context lasts."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def token(
        self,
        subject: str,
        audience: str | None,
        *,
        key: Any = None,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """An access token for `search`; `header` and `claims` replace what it says, None leaves that out."""
        now = int(time.time())
        said = {"iss": self.issuer, "sub": subject, "aud": audience, "iat": now, "exp": now + 300, "scope": "search"}
        key = key or self.key
        top = {"alg": "RS256", "typ": "at+jwt", "kid": key.kid, **(header or {})}
        return jwt.encode(_said(top), _said({**said, **claims}), key, [top["alg"]], default_type=None)

    def answer(self, path: str) -> dict[str, Any] | None:
        """What it says at `path`, or None."""
        if not self.up:
            return None
        if path == METADATA:
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        if path == "/keys":
            self.fetches += 1
            return dict(KeySet([self.key]).as_dict(private=False))
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = provider.answer(self.path)
                body = json.dumps(answer).encode()
                self.send_response(503 if answer is None else 200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: a test's output is its own."""

        return Handler


def _said(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
