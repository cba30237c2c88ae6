"""A made model on disk: built once under a lock, put in place by one rename, checked whenever it is loaded.

`manifest.json` beside the files lists each with its SHA-256. A directory without one was never finished and is made
again; a directory whose files differ from it is refused, because vectors of an altered model cannot be compared.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import ConfigurationError

MANIFEST = "manifest.json"
_UNFINISHED = ".making-"


def ensure_model(directory: Path, build: Callable[[Path], None]) -> Path:
    """`directory`, holding what `build` writes into an empty folder; safe with several processes at once.

    Errors: ConfigurationError when files are there but not as they were made; whatever `build` raises.
    """
    if not (directory / MANIFEST).exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _lock(directory.with_name(f".{directory.name}.lock")):
            if not (directory / MANIFEST).exists():
                _make(directory, build)
    verify_model(directory)
    return directory


def verify_model(directory: Path) -> None:
    """ConfigurationError unless every file is byte for byte what the manifest says."""
    try:
        expected = json.loads((directory / MANIFEST).read_bytes())["files"]
        intact = bool(expected) and all(_checksum(directory / name) == digest for name, digest in expected.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        intact = False
    if not intact:
        raise ConfigurationError(
            f"The embedding model in {directory} is damaged. Delete that folder; it is made again at the next start."
        )


def _make(directory: Path, build: Callable[[Path], None]) -> None:
    for leftover in directory.parent.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if directory.exists():
        shutil.rmtree(directory)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=directory.parent))
    try:
        build(unfinished)
        files = {path.name: _checksum(path) for path in sorted(unfinished.iterdir())}
        (unfinished / MANIFEST).write_text(json.dumps({"files": files}, indent=2), encoding="utf-8")
        for path in [*unfinished.iterdir(), unfinished]:
            _flush(path)
        unfinished.rename(directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _flush(directory.parent)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # the system lets go of it when the process dies
        yield


def _checksum(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
