"""The files of a database as they lie on the disk, to look for what should not be there."""

import mmap
from pathlib import Path

from support.postgres import RunDatabase


class Disk:
    """The table, TOAST and index files of one database; the write-ahead log is none of them."""

    def __init__(self, database: RunDatabase) -> None:
        self._database = database
        with database.superuser() as connection:
            found = connection.execute("""
                SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()
            """).fetchone()
        assert found is not None
        self._folder = Path(str(found[0])) / "base" / str(found[1])

    def holding(self, mark: bytes) -> set[str]:
        """Names of the files that hold `mark`, after everything in memory was written to them."""
        with self._database.superuser() as connection:
            connection.execute("CHECKPOINT")
        return {path.name for path in self._folder.iterdir() if path.is_file() and _holds(path, mark)}


def _holds(path: Path, mark: bytes) -> bool:
    if not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(mark) >= 0
