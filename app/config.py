"""Frozen settings: from the environment (`STACKS_…`), else from the file that `STACKS_CONFIG` names, else built in.

Only the composition root reads this.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.errors import ConfigurationError

PREFIX = "STACKS_"


def setting(default: Any, allowed: str, *, secret: bool = False, least: float | None = None) -> Any:
    """A field with its default, what is allowed in plain words, and whether it is masked when shown."""
    return field(default=default, metadata={"allowed": allowed, "secret": secret, "least": least})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting there is. The environment's name of `data_dir` is `STACKS_DATA_DIR`, and so on."""

    data_dir: Path = setting(Path(".data"), "a directory that only the service may read")
    host: str = setting("127.0.0.1", "an address to listen on")
    port: int = setting(8700, "1..65535", least=1)
    public_url: str = setting("", "the http(s) URL that clients use; empty: made of host and port")
    allowed_hosts: str = setting("", "host:port names, separated by commas, that requests may name besides our own")
    database_url: str = setting("", "a Postgres URL of the service login; empty: the embedded Postgres", secret=True)
    database_owner_url: str = setting("", "a Postgres URL of the owner login, for migrations only", secret=True)
    database_pool: int = setting(10, "1 or more connections a process", least=1)
    database_seconds: float = setting(5.0, "seconds to wait for the database, more than 0", least=0.1)
    shared_buffers: str = setting("256MB", "memory of the embedded Postgres, as Postgres writes it")
    model_dir: Path | None = setting(None, "a directory for models; empty: models below the data directory")
    upload_max_bytes: int = setting(100_000_000, "bytes a file may have, 1 or more", least=1)
    parser_seconds: int = setting(120, "whole seconds that reading one file may take", least=1)
    parser_memory_bytes: int = setting(2 << 30, "bytes of memory that reading one file may take", least=64 << 20)
    ocr_pages_max: int = setting(200, "pages of one file that may be pictures of text, 0 or more", least=0)
    ocr_page_seconds: int = setting(30, "whole seconds for each such page, on top of parser_seconds", least=1)
    issuers: str = setting("", "identity providers whose access tokens are taken, as JSON; empty: none")
    workers: int = setting(1, "1 or more server processes", least=1)
    ingest_workers: int = setting(1, "ingest processes beside the server; 0: run `stacks worker` elsewhere", least=0)
    ticket_key: str = setting("", "a secret shared with the database; empty: made in the data directory", secret=True)
    digest_key: str = setting("", "a secret for query digests; empty: made in the data directory", secret=True)
    log_level: str = setting("info", "debug, info, warning or error")

    @property
    def base_url(self) -> str:
        """The URL that clients use, without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url.rstrip("/") or f"http://{host}:{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every Host that a request may name."""
        own = [urlsplit(self.base_url).netloc, *(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]"))]
        return tuple(dict.fromkeys(own + [name.strip() for name in self.allowed_hosts.split(",") if name.strip()]))


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as `stacks config show` prints it."""

    name: str
    value: str
    source: str


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings. Raises `ConfigurationError` naming the wrong one and what is allowed."""
    return _build(environment)[0]


def described(environment: Mapping[str, str] = os.environ) -> list[Setting]:
    """Every setting with its value (secrets masked) and where it came from. Raises as `load` does."""
    settings, sources = _build(environment)
    shown = []
    for one in fields(Settings):
        value = getattr(settings, one.name)
        masked = "(set)" if one.metadata["secret"] and value else str("" if value is None else value)
        shown.append(Setting(PREFIX + one.name.upper(), masked, sources.get(one.name, "built in")))
    return shown


def _build(environment: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    known = {one.name: one for one in fields(Settings)}
    path = environment.get(PREFIX + "CONFIG", "")
    given = {name: (value, path) for name, value in (_file(path) if path else {}).items()}
    for variable, value in environment.items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and name not in _NOT_SETTINGS:
            given[name] = (value, "environment")
    for name in given.keys() - known.keys():
        raise ConfigurationError(f"{PREFIX}{name.upper()} is no setting. `stacks config show` lists those there are.")
    values = {name: _parsed(known[name], value) for name, (value, _) in given.items()}
    settings = Settings(**values)
    _check(settings)
    return settings, {name: source for name, (_, source) in given.items()}


_NOT_SETTINGS = ("config", "token", "url", "shared_data", "browser")


def _file(path: str) -> dict[str, Any]:
    try:
        given = tomllib.loads(Path(path).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{PREFIX}CONFIG names a file that cannot be read as TOML.") from error
    return {name: json.dumps(value) if isinstance(value, list) else value for name, value in given.items()}


def _parsed(one: Any, value: Any) -> Any:
    if value == "" and one.default is None:
        return None
    kind = Path if one.default is None or isinstance(one.default, Path) else type(one.default)
    try:
        parsed = kind(str(value))
    except ValueError:
        raise _wrong(one) from None
    if one.metadata["least"] is not None and not parsed >= one.metadata["least"]:
        raise _wrong(one)
    return parsed


def _wrong(one: Any) -> ConfigurationError:
    return ConfigurationError(f"{PREFIX}{one.name.upper()} is wrong; allowed: {one.metadata['allowed']}.")


def _check(settings: Settings) -> None:
    by_name = {one.name: one for one in fields(Settings)}
    public = urlsplit(settings.public_url)
    wrong = {
        "port": settings.port > 65535,
        "public_url": settings.public_url != "" and (public.scheme not in ("http", "https") or not public.netloc),
        "log_level": settings.log_level not in ("debug", "info", "warning", "error"),
        "database_url": settings.database_url != "" and not settings.database_url.startswith("postgres"),
        "database_owner_url": settings.database_owner_url != "" and settings.database_url == "",
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise _wrong(by_name[name])
