"""What the tests of the embedded Postgres share."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import app
from app.db.embedded import ClusterAddress, EmbeddedCluster
from app.db.secrets import secret

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root drops to another account")

# Children import what we import, from where we do.
CHILD_ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(app.__file__).parents[1]), *sys.path])}
HOLDER = """
import sys
from pathlib import Path
from app.db.embedded import EmbeddedCluster
cluster = EmbeddedCluster(Path(sys.argv[1]), system_dir=Path(sys.argv[2]))
print(cluster.acquire().socket_dir, flush=True)
sys.stdin.readline()
cluster.release()
print("released", flush=True)
"""


def new_cluster(scratch: Path, data: str = "data") -> EmbeddedCluster:
    return EmbeddedCluster(scratch / data, shared_buffers="16MB", system_dir=scratch / "system")


def connect(address: ClusterAddress, user: str, password: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(
        host=str(address.socket_dir),
        port=address.port,
        dbname=address.database,
        user=user,
        password=password,
        autocommit=True,
    )


def as_owner(address: ClusterAddress, data_dir: Path) -> "psycopg.Connection[tuple[object, ...]]":
    return connect(address, "stacks_owner", secret(data_dir, "owner"))


def postmaster(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def kill_and_wait(pid: int) -> None:
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([handle], [], [])
    os.close(handle)


def holder(scratch: Path, data: str = "data") -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(scratch / data), str(scratch / "system")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=CHILD_ENVIRONMENT | {"TMPDIR": tempfile.gettempdir()},
        start_new_session=True,
        text=True,
    )


def heard(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, "the child died"
    return line


def let_go(process: "subprocess.Popen[str]") -> None:
    process.communicate("\n", timeout=60)
    assert process.returncode == 0


@contextmanager
def busy_session(address: ClusterAddress, data: Path, statement: str) -> Iterator[int]:
    """The process number of a session that has begun to run `statement`, which nobody waits for."""
    session = as_owner(address, data)
    session.pgconn.send_query(statement.encode())
    session.pgconn.flush()
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
    with as_owner(address, data) as watcher:
        while watcher.execute(query, [session.info.backend_pid]).fetchone() is None:
            pass
    yield session.info.backend_pid
    session.close()


def wait_until_back(address: ClusterAddress, data: Path) -> None:
    while True:
        with suppress(psycopg.OperationalError):
            as_owner(address, data).close()
            return
