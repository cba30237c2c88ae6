"""One Postgres server on one cluster directory: what it is made of and what state it is in."""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from app.db.embedded.account import Account
from app.db.embedded.binaries import Binaries
from app.db.embedded.places import PORT
from app.errors import ConfigurationError

_LOG_BYTES = 8 * 1024 * 1024


def listens(socket_dir: Path) -> bool:
    """Whether something accepts on the server's socket in this directory."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(socket_dir / f".s.PGSQL.{PORT}"))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except (TimeoutError, BlockingIOError):
            return True  # nobody takes the call, but the line is there
    return True


@dataclass(frozen=True, slots=True)
class Server:
    """Paths and rights of one server. `log` is a file of ours, which the server is given opened."""

    cluster: Path
    socket_dir: Path
    log: Path
    binaries: Binaries
    account: Account

    def exists(self) -> bool:
        """Whether the cluster has been made."""
        return (self.cluster / "PG_VERSION").exists()

    def check(self) -> None:
        """Raise ConfigurationError when this cluster cannot be ours to run: another version's or another account's."""
        owner = self.cluster.lstat().st_uid
        if owner != self.account.uid:
            raise ConfigurationError(
                f"{self.cluster} belongs to uid {owner}, and Postgres would run as uid {self.account.uid}; "
                "start as the user who made it."
            )
        version, major = (self.cluster / "PG_VERSION").read_text().strip(), self.binaries.major(self.account)
        if version != major:
            raise ConfigurationError(
                f"{self.cluster} was made by Postgres {version} and the bundled one is {major}; "
                "back up with the version that made it and restore with this one."
            )

    def pid(self) -> int | None:
        """The process number the server left in its cluster; a hint only, since it may be long dead."""
        return int(lines[0]) if (lines := self._pid_file()) and lines[0].isdigit() else None

    def listens(self) -> bool:
        """Whether something accepts on the socket. A server that is halted (SIGSTOP) or still starting counts."""
        return listens(self.socket_dir)

    def ready(self) -> bool:
        """Whether the server takes sessions. The socket comes first: a dead server's file may say "ready" for ever."""
        return self.listens() and len(lines := self._pid_file()) > 7 and lines[7].strip() == "ready"

    def open_log(self) -> TextIOWrapper:
        """The log, to append to; set aside as `.1` when it has grown, so that it stays bounded over the restarts."""
        with suppress(FileNotFoundError):
            if self.log.lstat().st_size > _LOG_BYTES:
                self.log.replace(self.log.with_name(f"{self.log.name}.1"))
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        return os.fdopen(handle, "a", encoding="utf-8")

    def _pid_file(self) -> list[str]:
        with suppress(FileNotFoundError):
            return (self.cluster / "postmaster.pid").read_text().splitlines()
        return []
