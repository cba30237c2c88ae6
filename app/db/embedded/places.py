"""Where the cluster and its socket lie."""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from app.db.embedded.account import Account
from app.db.embedded.binaries import shared_directory
from app.db.secrets import owned_directory, write_whole
from app.errors import ConfigurationError

SYSTEM_DIR = Path("/var/lib/closed-stacks")
PORT = 5432
# What sun_path holds on the strictest system we know (macOS: 104 bytes with the final zero).
_LONGEST_SOCKET = 103


def cluster_directory(data_dir: Path, account: Account, system_dir: Path) -> Path:
    """`data_dir/postgres`, or a place below `system_dir` when the server's account cannot walk into `data_dir`.

    The choice sticks: a cluster that exists is used where it is, or ConfigurationError says why it cannot be. An
    unreachable cluster must never be answered by an empty new one.
    """
    inside, note = data_dir / "postgres", _note(data_dir)
    outside = system_dir / _digest(data_dir) / "postgres"
    if note.exists():
        return _noted(note, outside)
    if account.can_enter(data_dir):
        return inside
    if inside.exists():
        raise ConfigurationError(f"{inside} can no longer be reached by the account that Postgres runs under.")
    try:
        shared_directory(system_dir)
        shared_directory(outside.parent)
    except OSError as error:
        raise ConfigurationError(
            f"The database needs a place below {system_dir}, which cannot be made ({error.strerror}). Choose a data "
            "directory that the account postgres (or nobody) can reach, or start as an ordinary user."
        ) from error
    return outside


def note_cluster(data_dir: Path, cluster: Path) -> None:
    """Leave a word in the data directory about a cluster that exists outside of it."""
    if cluster.parent != data_dir:
        write_whole(_note(data_dir), f"{cluster}\n")


def socket_directory(data_dir: Path, account: Account) -> Path:
    """A private directory with a short name under the system's temporary directory, made or checked.

    Noted in the data directory, so that processes whose TMPDIR differs find the same socket. Raises ConfigurationError
    when somebody else got there first or the path is too long for a socket.
    """
    path = noted_socket_directory(data_dir) or _temporary() / _socket_name(data_dir)
    if len(os.fsencode(path / f".s.PGSQL.{PORT}")) > _LONGEST_SOCKET:
        raise ConfigurationError(f"{path.parent} is too long a path for a socket; set TMPDIR to a shorter one.")
    owned_directory(path, owner=account.uid, group=account.gid, mode=0o700)
    if noted_socket_directory(data_dir) is None:
        _socket_note(data_dir).unlink(missing_ok=True)
        write_whole(_socket_note(data_dir), f"{path}\n")
    return path


def noted_socket_directory(data_dir: Path) -> Path | None:
    """The socket directory in use, if there is a note of one that can still be right."""
    note = _socket_note(data_dir)
    if not note.exists():
        return None
    path = Path(note.read_text(encoding="utf-8").strip())
    return path if path.name == _socket_name(data_dir) and path.parent.is_dir() else None


def _temporary() -> Path:
    path = Path(tempfile.gettempdir()).resolve()
    mode = path.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise ConfigurationError(f"{path} lets anybody replace files (no sticky bit); set TMPDIR to a safe place.")
    return path


def _socket_name(data_dir: Path) -> str:
    return f"closed-stacks-{_digest(data_dir)}"


def _socket_note(data_dir: Path) -> Path:
    return data_dir / "postgres.socket"


def _noted(note: Path, expected: Path) -> Path:
    if note.read_text(encoding="utf-8").strip() != str(expected):
        raise ConfigurationError(
            f"{note} speaks of another place than {expected}: the data directory was moved or copied. Move the cluster "
            "it names there and correct the file, or remove the file to begin with an empty database."
        )
    if not (expected / "PG_VERSION").exists():
        raise ConfigurationError(
            f"The cluster that {note} names is not there. Restore it, or remove the file to begin with an "
            "empty database."
        )
    return expected


def _note(data_dir: Path) -> Path:
    return data_dir / "postgres.location"


def _digest(data_dir: Path) -> str:
    return hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
