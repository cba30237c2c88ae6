"""Who keeps the server up: several processes, and objects, on one data directory."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from embedded_case import heard, holder, let_go, linux, new_cluster, postmaster

from app.db.embedded import EmbeddedCluster, processes
from app.errors import InternalError

pytestmark = linux


def test_the_last_of_two_processes_stops_the_server(cluster: EmbeddedCluster, scratch: Path) -> None:
    home = scratch / "data" / "postgres"
    other = holder(scratch)
    socket_dir = heard(other)
    assert cluster.is_running()
    assert str(cluster.acquire().socket_dir) == socket_dir
    let_go(other)
    assert cluster.is_running()
    pid = postmaster(scratch / "data")
    assert pid in processes.servers_in(home)
    cluster.release()
    assert not cluster.is_running()
    assert processes.servers_in(home) == []
    assert not processes.alive(pid)


def test_two_processes_that_start_at_once_share_one_server(scratch: Path) -> None:
    both = [holder(scratch), holder(scratch)]
    assert len({heard(each) for each in both}) == 1
    for each in both:
        let_go(each)
    assert processes.servers_in(scratch / "data" / "postgres") == []


def test_holds_of_one_object_are_counted(cluster: EmbeddedCluster) -> None:
    with cluster:
        with cluster:
            pass
        assert cluster.is_running()
    assert not cluster.is_running()
    with pytest.raises(InternalError):
        cluster.release()


def test_a_ctrl_c_at_the_holders_terminal_leaves_the_server_alone(cluster: EmbeddedCluster, scratch: Path) -> None:
    other = holder(scratch)
    heard(other)
    with cluster:
        pid = postmaster(scratch / "data")
        assert os.getsid(pid) != os.getsid(other.pid)
        os.killpg(other.pid, signal.SIGINT)
        other.communicate(timeout=60)
        assert postmaster(scratch / "data") == pid
        assert cluster.is_running()
    assert not cluster.is_running()


def test_the_server_of_a_killed_holder_is_used_again(cluster: EmbeddedCluster, scratch: Path) -> None:
    other = holder(scratch)
    heard(other)
    pid = postmaster(scratch / "data")
    other.kill()
    other.communicate()
    with cluster:
        assert postmaster(scratch / "data") == pid
    assert not cluster.is_running()


def test_another_tmpdir_finds_the_same_server(cluster: EmbeddedCluster, scratch: Path, tmp_path: Path) -> None:
    with cluster as address:
        tempfile.tempdir = str(tmp_path)  # the fixture puts it back
        with new_cluster(scratch) as same:
            assert same == address
