"""Where call rows wait on disk while the database cannot take them. Several processes may share one spool."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog

log = structlog.get_logger()


class Spool:
    """An append-only file of rows, each durable (fsync) before `append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def append(self, row: dict[str, Any]) -> None:
        """Keep `row`. Raises `OSError` when the disk cannot take it either."""
        with self._locked():
            _append(self._path, row)

    def claimed(self) -> list[Path]:
        """Set aside what waits, and return every file set aside (also by a process that died before it was done)."""
        if self._path.exists():
            with self._locked():
                if self._path.exists():
                    self._path.rename(self._path.with_suffix(f".{uuid4().hex}.claimed"))
        return sorted(self._path.parent.glob(f"{self._path.stem}.*.claimed"))

    @staticmethod
    def rows(claimed: Path) -> list[dict[str, Any]]:
        """The rows of a file set aside; none if another process has finished with it meanwhile.

        A line that was cut short is no row: its `append` never returned, so no answer was given on its strength.
        """
        try:
            lines = claimed.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [row for line in lines if line and (row := _row(line)) is not None]

    @staticmethod
    def refuse(row: dict[str, Any], claimed: Path) -> None:
        """Keep a row that the database will never take beside the spool, for the operator. Raises `OSError`."""
        _append(claimed.with_name("refused.jsonl"), row)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _append(path: Path, row: dict[str, Any]) -> None:
    # A line end on either side: what a crash or a full disk cut short before us must not swallow this row.
    data = b"\n" + json.dumps(row, default=str).encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        log.error("a row of the call spool was cut short")
        return None
    return row
