"""The system account that the database server runs under: ours, or a humble one when we are root."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import ConfigurationError

_HUMBLE = ("postgres", "nobody")
_LONGEST = 600.0


@dataclass(frozen=True, slots=True)
class Account:
    """Numeric user and group; `dropped` when we are root and give our rights up for it."""

    uid: int
    gid: int
    dropped: bool

    def run(self, argv: Sequence[str | Path], *, stderr: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        """Run a program as this account to its end, in a session of its own, and return its standard output.

        The session keeps it (and a server it leaves behind) clear of a Ctrl-C at our terminal. The environment is
        empty but for the bare needs: PG* variables would redirect it, and our own settings are none of its business.
        Raises OSError when it cannot be executed, ConfigurationError when it does not end in ten minutes.
        """
        try:
            return subprocess.run(
                [str(part) for part in argv],
                user=self.uid if self.dropped else None,
                group=self.gid if self.dropped else None,
                extra_groups=[] if self.dropped else None,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C"},
                umask=0o077,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                text=True,
                check=False,
                timeout=_LONGEST,
            )
        except subprocess.TimeoutExpired as error:
            raise ConfigurationError(f"{Path(argv[0]).name} did not end within {_LONGEST:.0f} s.") from error

    def can_enter(self, directory: Path) -> bool:
        """Whether this account may walk into `directory`. Asked of the kernel: modes alone do not tell."""
        return not self.dropped or self.run(["/bin/sh", "-c", '[ -x "$1" ]', "sh", directory]).returncode == 0


def server_account() -> Account:
    """Ourselves; as root `postgres` or else `nobody`, since Postgres refuses to run as root.

    Raises ConfigurationError when there is no such account, or when we run under a bare number without a name, as
    containers allow: Postgres looks its user's name up.
    """
    if os.geteuid() != 0:
        return _ourselves()
    for name in _HUMBLE:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, dropped=True)
    raise ConfigurationError(
        f"Postgres does not run as root, and there is no account {' or '.join(_HUMBLE)} to run it under. "
        "Start as an ordinary user, or set STACKS_DATABASE_URL."
    )


def _ourselves() -> Account:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise ConfigurationError(
            f"The uid {os.geteuid()} has no name on this system, and Postgres needs one for its user. "
            "Give it an entry in /etc/passwd, or set STACKS_DATABASE_URL."
        ) from None
    return Account(os.geteuid(), os.getegid(), dropped=False)
