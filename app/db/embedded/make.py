"""Make a new cluster."""

import os
import secrets
import shutil
from pathlib import Path

from app.db.embedded.address import SUPERUSER
from app.db.embedded.server import Server
from app.db.secrets import owned_directory, sync_directory
from app.errors import ConfigurationError

# Passwords on every way in, "trust" on none. C.UTF-8 from the builtin provider sorts the same on every system, so an
# index outlives an update of the C library.
_OPTIONS = (
    "--auth-local=scram-sha-256",
    "--auth-host=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
    "--no-instructions",
)


def make_cluster(server: Server, superuser_password: str) -> None:
    """Initialise the server's cluster, whole or not at all. Raises ConfigurationError."""
    draft = server.cluster.with_name(f"{server.cluster.name}.new")
    if draft.exists():  # from a start that was cut off; no server ever ran on it
        shutil.rmtree(draft)
    owned_directory(draft, owner=server.account.uid, group=server.account.gid, mode=0o700)
    password_file = _hand_over(server, superuser_password)
    try:
        _initdb(server, draft, password_file)
    finally:
        password_file.unlink()
    draft.rename(server.cluster)
    sync_directory(server.cluster.parent)


def _initdb(server: Server, directory: Path, password_file: Path) -> None:
    command: list[str | Path] = [
        server.binaries.program("initdb"),
        "-D",
        directory,
        "-U",
        SUPERUSER,
        f"--pwfile={password_file}",
    ]
    with server.open_log() as log:
        done = server.account.run([*command, *_OPTIONS], stderr=log.fileno())
    if done.returncode != 0:
        raise ConfigurationError(f"The embedded database could not be made; the end of {server.log} says why.")


def _hand_over(server: Server, password: str) -> Path:
    # The secrets directory is closed to the server's account; the socket directory is open to it alone.
    path = server.socket_dir / f"initdb-{secrets.token_hex(8)}"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(f"{password}\n")
        if server.account.dropped:
            os.fchown(file.fileno(), server.account.uid, server.account.gid)
    return path
