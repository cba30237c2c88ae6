"""Locks between processes: who is using the server, and whose turn it is to start or stop it.

Both are `flock`s, so the kernel gives them back when a process dies, however it dies.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import ConfigurationError


@contextmanager
def turn(data_dir: Path) -> Iterator[None]:
    """Be the only one who starts, stops or prepares the server of this data directory; waits for that."""
    handle = _open(data_dir / "postgres.start.lock")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class Hold:
    """One shared hold on the server. Taken and given up only within a `turn`, so neither can overlap another."""

    def __init__(self, data_dir: Path) -> None:
        self._handle = _open(data_dir / "postgres.lock")
        fcntl.flock(self._handle, fcntl.LOCK_SH)

    def is_last(self) -> bool:
        """Whether nobody else holds. Gives up our own share of the lock if somebody does."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Give up the hold."""
        os.close(self._handle)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be opened: {error.strerror}.") from error
