"""Random secrets kept as private files below the data directory, and the private directories they live in."""

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from app.errors import ConfigurationError

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_SECRET_BYTES = 32


def secret(data_dir: Path, name: str) -> str:
    """The secret called `name`: 32 random bytes as 43 url-safe characters, made on first use.

    Whatever number of processes ask at once, all get the same value. Raises ConfigurationError when the file or its
    directory is not ours alone, is empty, or cannot be read or written.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name for a secret; allowed: lower-case letters, digits, - and _.")
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        directory = owned_directory(data_dir / "secrets", owner=os.geteuid(), group=os.getegid(), mode=0o700)
        path = directory / name
        if not path.is_symlink() and not path.exists():
            _create(path)
        return _read(path)
    except OSError as error:
        raise ConfigurationError(f"The secret {name} below {data_dir} is unusable: {error.strerror}.") from error


def owned_directory(path: Path, *, owner: int, group: int, mode: int) -> Path:
    """Make `path` (its parent must exist) as a directory of `owner` with `mode`, or check that it already is one.

    Anybody may have put something in our place first, above all under a shared temporary directory: a link, a file, a
    directory of somebody else's or one open wider than `mode` raises ConfigurationError.
    """
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise ConfigurationError(f"{path} must be a directory of our own: {error.strerror}.") from error
    try:
        _claim(path, handle, owner, group, mode)
    finally:
        os.close(handle)
    return path


def _claim(path: Path, handle: int, owner: int, group: int, mode: int) -> None:
    found = os.fstat(handle)
    if found.st_uid not in (owner, os.geteuid()):
        raise ConfigurationError(
            f"{path} belongs to another user (uid {found.st_uid}); remove it or choose another place."
        )
    if stat.S_IMODE(found.st_mode) & ~mode:
        raise ConfigurationError(f"{path} is open to others; it must have mode {mode:04o} at most.")
    # What we work on is the handle, never the name again: the name could point elsewhere by now.
    if found.st_uid != owner:
        os.fchown(handle, owner, group)
    if stat.S_IMODE(found.st_mode) != mode:
        os.fchmod(handle, mode)


def write_whole(path: Path, text: str) -> bool:
    """Put `text` at `path` with mode 0600, whole and durable or not at all; False when something is there already."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A hard link refuses to replace: of several writers exactly one wins, and readers only ever see a whole file.
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_directory(path.parent)
    return True


def sync_directory(path: Path) -> None:
    """Make names just created in `path` durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _create(path: Path) -> None:
    write_whole(path, secrets.token_urlsafe(_SECRET_BYTES))


def _read(path: Path) -> str:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ConfigurationError(f"{path} must be a file of our own with mode 0600.")
        value = file.read().strip()
    if not value:
        raise ConfigurationError(f"{path} is empty; restore it from a backup.")
    return value
