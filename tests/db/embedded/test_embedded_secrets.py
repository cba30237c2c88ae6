"""Secrets: private files with one value, whoever asks first."""

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from embedded_case import CHILD_ENVIRONMENT, linux

from app.db.embedded import EmbeddedCluster
from app.db.secrets import secret
from app.errors import ConfigurationError

pytestmark = linux


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
