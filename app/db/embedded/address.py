"""Where a running cluster is reached."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

SUPERUSER = "postgres"


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A socket directory, the number in the socket's name, and the database."""

    socket_dir: Path
    port: int
    database: str

    def url(self, user: str, password: str) -> str:
        """A `postgresql+psycopg://` URL with the password in it: keep it out of logs and messages."""
        query = {"host": str(self.socket_dir), "port": str(self.port)}
        url = URL.create("postgresql+psycopg", username=user, password=password, database=self.database, query=query)
        return url.render_as_string(hide_password=False)
