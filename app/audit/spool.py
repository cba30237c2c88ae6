"""Where call rows wait on disk while the database cannot take them. Several processes may share one spool."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4


class Spool:
    """An append-only file of rows, each durable (fsync) before `append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def append(self, row: dict[str, Any]) -> None:
        """Keep `row`. Raises `OSError` when the disk cannot take it either."""
        with self._locked():
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, json.dumps(row, default=str).encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def claimed(self) -> list[Path]:
        """Set aside what waits, and return every file set aside (also by a process that died before it was done)."""
        if self._path.exists():
            with self._locked():
                if self._path.exists():
                    self._path.rename(self._path.with_suffix(f".{uuid4().hex}.claimed"))
        return sorted(self._path.parent.glob(f"{self._path.stem}.*.claimed"))

    @staticmethod
    def rows(claimed: Path) -> list[dict[str, Any]]:
        """The rows of a file set aside; none if another process has finished with it meanwhile."""
        try:
            lines = claimed.read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
