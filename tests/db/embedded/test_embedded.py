"""The embedded Postgres as its users see it: logins, settings, log, restarts."""

import shutil
import stat
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from embedded_case import as_owner, busy_session, connect, kill_and_wait, linux, new_cluster, wait_until_back

from app.db.embedded import SUPERUSER, ClusterAddress, EmbeddedCluster
from app.errors import ConfigurationError

pytestmark = linux


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


def test_data_outlives_a_restart(cluster: EmbeddedCluster, scratch: Path) -> None:
    with cluster as address, as_owner(address, scratch / "data") as session:
        session.execute("CREATE TABLE kept AS SELECT 7 AS n")
    with new_cluster(scratch) as address, as_owner(address, scratch / "data") as session:
        assert session.execute("SELECT n FROM kept").fetchone() == (7,)


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
