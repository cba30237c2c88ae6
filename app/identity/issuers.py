"""The identity providers that an instance trusts, as configured, and what each may say of a principal."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from app.domain.access import Action
from app.domain.principal import LOCAL_ISSUER
from app.errors import ConfigurationError

ALLOWED = (
    'a JSON list of {"issuer": URL, "jwks_uri"?: URL, "audience"?: text, "groups_claim"?: name, '
    '"scopes"?: {"a scope of theirs": ["action", ...]}}; URLs are https, or http on a loopback address'
)


def _by_their_own_names() -> Mapping[str, frozenset[Action]]:
    return {action.value: frozenset({action}) for action in Action}


@dataclass(frozen=True, slots=True)
class Issuer:
    """One identity provider. `scopes` says which of our actions each OAuth scope of its tokens opens.

    With `jwks_uri` empty its keys are found by discovery; `audience` empty means this server's own resource URL.
    """

    issuer: str
    jwks_uri: str = ""
    audience: str = ""
    groups_claim: str = "groups"
    scopes: Mapping[str, frozenset[Action]] = field(default_factory=_by_their_own_names)


def configured(setting: str, value: str) -> tuple[Issuer, ...]:
    """The issuers that the value of a setting names. Raises `ConfigurationError`, naming the setting."""
    if not value:
        return ()
    try:
        issuers = tuple(_issuer(one) for one in _list(json.loads(value)))
        if len({one.issuer for one in issuers}) != len(issuers):
            raise ValueError("an issuer is named twice")
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"{setting} is wrong ({error}); allowed: {ALLOWED}.") from error
    return issuers


def _list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError("not a list")
    return given


def _issuer(given: Any) -> Issuer:
    if not isinstance(given, dict):
        raise ValueError("not an object")
    if unknown := given.keys() - {"issuer", "jwks_uri", "audience", "groups_claim", "scopes"}:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    for name in given.keys() - {"scopes"}:
        if not (isinstance(given[name], str) and given[name]):
            raise ValueError(f"{name} is no text")
    for name in ("issuer", "jwks_uri"):
        if name in given and not is_fetchable(given[name]):
            raise ValueError(f"{name} is no such URL")
    # Its name and a subject's are joined by a bar, and the name of local principals is taken.
    if "issuer" not in given or "|" in given["issuer"] or given["issuer"] == LOCAL_ISSUER:
        raise ValueError("issuer is missing, or holds a bar")
    scopes = {"scopes": _scopes(given["scopes"])} if "scopes" in given else {}
    return Issuer(**{**given, **scopes})


def _scopes(given: Any) -> Mapping[str, frozenset[Action]]:
    if not isinstance(given, dict):
        raise ValueError("scopes is no object")
    return {scope: frozenset(Action(action) for action in _list(actions)) for scope, actions in given.items()}


def is_fetchable(url: str) -> bool:
    """Whether keys may come from `url`: who sits on the way must not be able to put in their own."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
