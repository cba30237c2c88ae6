"""Servers that were killed, halted or cut off."""

import os
import signal
import subprocess
from pathlib import Path

from embedded_case import as_owner, busy_session, kill_and_wait, linux, postmaster

from app.db.embedded import EmbeddedCluster, processes
from app.db.embedded.account import server_account

pytestmark = linux


def test_a_killed_server_comes_back_with_its_data(cluster: EmbeddedCluster, scratch: Path) -> None:
    data = scratch / "data"
    with cluster as address:
        with as_owner(address, data) as session:
            session.execute("CREATE TABLE kept AS SELECT 7 AS n")
        # A session that computes does not notice the death of its server and holds on to the shared memory.
        with busy_session(address, data, "SELECT count(*) FROM generate_series(1, 1000000000000)") as pid:
            kill_and_wait(postmaster(data))
            assert not cluster.is_running()
            assert pid in processes.servers_in(data / "postgres")
            cluster.ensure_running()
            assert pid not in processes.servers_in(data / "postgres")
        with as_owner(address, data) as session:
            assert session.execute("SELECT n FROM kept").fetchone() == (7,)
        running = postmaster(data)
        cluster.ensure_running()
        assert postmaster(data) == running
    assert processes.servers_in(data / "postgres") == []


def test_a_dead_servers_number_may_belong_to_another_process_by_now(cluster: EmbeddedCluster, scratch: Path) -> None:
    data, account = scratch / "data", server_account()
    user = account.uid if account.dropped else None
    bystander = subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=user, cwd="/")
    with cluster as address:
        kill_and_wait(postmaster(data))
        for stale in (data / "postgres" / "postmaster.pid", address.socket_dir / ".s.PGSQL.5432.lock"):
            lines = stale.read_text().split("\n")
            with stale.open("r+") as file:
                file.write("\n".join([str(bystander.pid), *lines[1:]]))
                file.truncate()
        cluster.ensure_running()
        assert cluster.is_running()
    assert bystander.poll() is None
    bystander.communicate()


def test_a_halted_server_counts_as_running_and_can_be_stopped(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster:
        pid = postmaster(scratch / "data")
        os.kill(pid, signal.SIGSTOP)
        cluster.ensure_running()
        assert postmaster(scratch / "data") == pid
        assert cluster.is_running()
    assert processes.servers_in(scratch / "data" / "postgres") == []


def test_a_server_whose_socket_was_removed_is_started_anew(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster as address:
        (address.socket_dir / ".s.PGSQL.5432").unlink()
        cluster.ensure_running()
        as_owner(address, scratch / "data").close()
