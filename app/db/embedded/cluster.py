"""The embedded cluster as the rest of the appliance sees it: take a hold, use it, give it up."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

import psycopg

from app.db.embedded import running
from app.db.embedded.account import server_account
from app.db.embedded.address import ClusterAddress
from app.db.embedded.binaries import find_binaries
from app.db.embedded.cpu import check_cpu
from app.db.embedded.holds import Hold, turn
from app.db.embedded.make import make_cluster
from app.db.embedded.places import (
    PORT,
    SYSTEM_DIR,
    cluster_directory,
    note_cluster,
    noted_socket_directory,
    socket_directory,
)
from app.db.embedded.prepare import DATABASE, prepare
from app.db.embedded.server import Server, listens
from app.db.secrets import secret
from app.errors import ConfigurationError, IndexUnavailable, InternalError


class EmbeddedCluster:
    """A Postgres of our own in `data_dir`, shared by all processes that use that directory.

    Whoever comes first starts the server, whoever goes last stops it; a process that dies gives its hold up by dying.
    May be used from several threads. A forked child has no hold of its own and must make its own object.
    """

    def __init__(self, data_dir: Path, *, shared_buffers: str = "256MB", system_dir: Path = SYSTEM_DIR) -> None:
        """`system_dir` is where root puts what the server's humbler account cannot reach otherwise."""
        # Resolved, so that every spelling of the directory leads to the same locks and the same socket.
        self._data_dir = data_dir.resolve()
        self._system_dir = system_dir.resolve()
        self._shared_buffers = shared_buffers
        self._mutex = threading.RLock()
        self._holds: list[Hold] = []
        self._server: Server | None = None

    def acquire(self) -> ClusterAddress:
        """Take a hold on the running, prepared server; it is made on first use and started when it does not run.

        Raises ConfigurationError when this machine or this directory is not fit for it, IndexUnavailable when the
        server does not get ready in time.
        """
        check_cpu()
        with self._mutex, self._files_in_order():
            self._data_dir.mkdir(parents=True, exist_ok=True)
            with turn(self._data_dir), ExitStack() as undo:
                self._holds.append(Hold(self._data_dir))
                undo.callback(self._let_go)
                self._server = self._server or self._find_server()
                self._start(self._server)
                self._prepare(self._server)
                undo.pop_all()
                return self._address(self._server)

    def release(self) -> None:
        """Give up one hold; the last holder of all processes stops the server and returns when it is gone."""
        with self._mutex:
            if not self._holds:
                raise InternalError("A hold on the embedded database was given up twice.")
            with turn(self._data_dir):
                self._let_go()

    def ensure_running(self) -> None:
        """Start the server again if it was killed while we hold it; nothing to do otherwise. Raises as `acquire`."""
        with self._mutex:
            if not self._holds or self._server is None:
                raise InternalError("The embedded database is watched without a hold on it.")
            if not self._server.ready():
                with self._files_in_order(), turn(self._data_dir):
                    self._start(self._server)

    def is_running(self) -> bool:
        """Whether the server of this data directory listens, whoever started it."""
        socket_dir = noted_socket_directory(self._data_dir)
        return socket_dir is not None and listens(socket_dir)

    def __enter__(self) -> ClusterAddress:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    @contextmanager
    def _files_in_order(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigurationError(f"The database in {self._data_dir} is unusable: {error.strerror}.") from error

    def _find_server(self) -> Server:
        account = server_account()
        return Server(
            cluster=cluster_directory(self._data_dir, account, self._system_dir),
            socket_dir=socket_directory(self._data_dir, account),
            log=self._data_dir / "postgres.log",
            binaries=find_binaries(account, self._system_dir),
            account=account,
        )

    def _start(self, server: Server) -> None:
        if not server.exists():
            make_cluster(server, secret(self._data_dir, "superuser"))
        note_cluster(self._data_dir, server.cluster)
        if server.listens():
            running.wait(server)
        else:
            server.check()
            running.start(server, self._shared_buffers)

    def _prepare(self, server: Server) -> None:
        passwords = secret(self._data_dir, "superuser"), secret(self._data_dir, "owner")
        secret(self._data_dir, "service")
        try:
            prepare(self._address(server), *passwords, server.binaries.vector_version())
        except psycopg.errors.ConnectionTimeout:
            raise IndexUnavailable from None
        except psycopg.Error as error:
            # The driver's own words stay out: they may repeat a statement.
            raise ConfigurationError(
                f"The embedded database could not be prepared ({type(error).__name__}). If {self._data_dir}/secrets "
                f"was replaced, restore it; the end of {server.log} may say more."
            ) from None

    def _let_go(self) -> None:
        hold = self._holds.pop()
        try:
            if hold.is_last() and self._server is not None and self._server.exists():
                running.stop(self._server)
        finally:
            hold.close()

    def _address(self, server: Server) -> ClusterAddress:
        return ClusterAddress(server.socket_dir, PORT, DATABASE)
