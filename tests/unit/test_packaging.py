"""What a clean checkout is set up from: declared and locked dependencies, their licences, the containers."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK, RUN_LOCK = ROOT / "requirements.lock", ROOT / "requirements-run.lock"

PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|HPND|0BSD)\b", re.IGNORECASE)
COPYLEFT = re.compile(r"\bA?GPL|\bGNU (Affero |General )", re.IGNORECASE)
# Used as they are, as separate packages: a library under the Lesser GPL (its adapter for SQLAlchemy is the only
# asynchronous one we know), and tools for testing that no user of the appliance gets.
WEAK_COPYLEFT = {"psycopg", "pytest-postgresql", "hypothesis", "fpdf2"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {canonical(found[0]) for one in requirements if (found := re.match(r"[A-Za-z0-9._-]+", one))}


RUNTIME = names(PROJECT["dependencies"])
EXTRAS = {extra: names(wanted) for extra, wanted in PROJECT["optional-dependencies"].items()}
DIRECT = RUNTIME.union(*EXTRAS.values())


# --- dependencies ----------------------------------------------------------------------------------------------------


def imported(*folders: str) -> dict[str, str]:
    """Each top-level package from elsewhere that the folders import, and a file that does."""
    own = {"app", "acceptance"} | {path.stem for path in (ROOT / "tests").rglob("*")}
    found: dict[str, str] = {}
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {module.partition(".")[0]: path.relative_to(ROOT).as_posix() for module in modules}
    return {name: place for name, place in found.items() if name not in own | sys.stdlib_module_names}


@pytest.mark.parametrize(
    ("folders", "declared"),
    [
        (("app", "acceptance", "migrations"), RUNTIME),
        (("tests", "fixtures"), DIRECT),
    ],
)
def test_every_import_is_declared(folders: tuple[str, ...], declared: set[str]) -> None:
    owners = metadata.packages_distributions()
    missing = {
        name: place
        for name, place in imported(*folders).items()
        if not declared & {canonical(owner) for owner in owners.get(name, [])}
    }
    assert missing == {}


def locked(path: Path) -> dict[str, list[str]]:
    """The hashes of each pinned requirement in a lock file."""
    entries = re.split(r"\n(?=\S)", path.read_text().strip().replace("\\\n", " "))
    pins = {}
    for entry in entries:
        pin = re.match(r"([a-z0-9-]+)==(\S+)", entry)
        assert pin, f"{path.name}: {entry[:60]} is no pinned requirement"
        pins[f"{pin[1]}=={pin[2]}"] = re.findall(r"--hash=(sha256:[0-9a-f]{64})\b", entry)
    return pins


@pytest.mark.parametrize("path", [LOCK, RUN_LOCK], ids=lambda path: path.name)
def test_a_lock_pins_all_by_hash_and_names_no_registry(path: Path) -> None:
    pins = locked(path)
    assert len(pins) > 50
    assert [pin for pin, hashes in pins.items() if not hashes] == []
    text = path.read_text()
    assert "://" not in text
    assert set(re.findall(r"(?<!\S)-\S+?(?==|\s)", text)) == {"--hash"}


def test_the_locks_hold_what_is_declared_and_agree() -> None:
    every, run = locked(LOCK), locked(RUN_LOCK)
    assert {pin: hashes for pin, hashes in run.items() if every.get(pin) != hashes} == {}
    assert names(list(every)) >= DIRECT
    assert names(list(run)) >= RUNTIME | EXTRAS["build"]
    assert not names(list(run)) & {"pytest", "hypothesis", "mypy", "ruff"}


def test_what_runs_here_is_what_is_locked() -> None:
    pins = locked(LOCK)
    assert [name for name in sorted(DIRECT) if f"{name}=={metadata.version(name)}" not in pins] == []


@pytest.mark.parametrize("name", sorted(DIRECT))
def test_a_direct_dependency_has_a_permissive_licence(name: str) -> None:
    found = metadata.metadata(name)
    classifiers = [one for one in found.get_all("Classifier", []) if one.startswith("License ::")]
    # Some put the whole text in the field; its first line says which it is.
    fields = [found[field][:200] for field in ("License-Expression", "License") if field in found]
    stated = " / ".join([*fields, *classifiers])
    if name not in WEAK_COPYLEFT:
        assert PERMISSIVE.search(stated), f"{name}: {stated}"
        assert not COPYLEFT.search(stated), f"{name}: {stated}"


# --- containers ------------------------------------------------------------------------------------------------------

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = [
    line for line in (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines() if line and line[0] != "#"
]


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_a_container_is_confined(service: dict[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert any(place.startswith("/tmp:") for place in service["tmpfs"])
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "network_mode"} & service.keys()
    assert service.get("user", "10001:10001").partition(":")[0] not in ("0", "root")
    assert not [one for one in service["volumes"] if "docker.sock" in one]


def test_images_are_pinned() -> None:
    assert re.fullmatch(r"pgvector/pgvector:0\.8\.\d+-pg1[78]", SERVICES["postgres"]["image"])
    version = PROJECT["version"]
    assert {SERVICES[name]["image"] for name in ("migrate", "server", "worker")} == {f"closed-stacks:{version}"}
    for line in DOCKERFILE:
        if line.startswith("FROM "):
            assert re.fullmatch(r"FROM python:3\.\d+-slim-\w+( AS \w+)?", line)


def test_secrets_come_by_file() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN|KEY|DATABASE_URL|CONFIG", variable):
                assert value.startswith("/run/secrets/"), f"{name}: {variable}"
                assert Path(value).name in service["secrets"]
    assert all(one["file"].startswith(".secrets/") for one in COMPOSE["secrets"].values())
    for kept_out in (".gitignore", ".dockerignore"):
        assert re.search(r"^(\.secrets/|\*)$", (ROOT / kept_out).read_text(), re.MULTILINE)


def test_only_migrations_know_the_owner_and_only_the_server_is_reached() -> None:
    assert {name for name, one in SERVICES.items() if "migrate.toml" in one["secrets"]} == {"migrate"}
    assert {name for name, one in SERVICES.items() if "superuser_password" in one["secrets"]} == {"postgres"}
    assert {name for name, one in SERVICES.items() if "ports" in one} == {"server"}
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["server"]["ports"])
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert {name for name, one in SERVICES.items() if one["networks"] != ["inside"]} == {"server"}


def test_each_service_waits_and_is_watched() -> None:
    assert "pg_isready" in SERVICES["postgres"]["healthcheck"]["test"]
    assert "/health/ready" in SERVICES["server"]["healthcheck"]["test"][-1]
    ast.parse(SERVICES["server"]["healthcheck"]["test"][-1])
    assert SERVICES["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    for name in ("server", "worker"):
        assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        assert SERVICES[name]["environment"]["STACKS_INGEST_WORKERS"] == "0"
    assert SERVICES["postgres"]["shm_size"] == "1gb"


def test_the_image_runs_as_nobody_in_particular_on_locked_packages() -> None:
    assert [line for line in DOCKERFILE if line.startswith("USER ")] == ["USER 10001:10001"]
    installs = [part for line in DOCKERFILE for part in line.split("&&") if "pip install" in part]
    assert installs
    assert all("--require-hashes" in part or "--no-deps --no-build-isolation" in part for part in installs)
    copied = {
        line.split()[1]
        for line in (ROOT / ".dockerignore").read_text().replace("!", "! ").splitlines()
        if line[:1] == "!"
    }
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_nothing_that_is_started_reports_to_a_third_party() -> None:
    assert any("ORT_DISABLE_TELEMETRY=1" in line for line in DOCKERFILE if line.startswith("ENV "))
    assert "export ORT_DISABLE_TELEMETRY := 1" in (ROOT / "Makefile").read_text()


def test_compose_accepts_the_file() -> None:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("docker-compose is not installed")
    done = subprocess.run([program, "config", "--quiet"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_secrets_are_made_once_and_kept(tmp_path: Path) -> None:
    script = tmp_path / "docs" / "deploy" / "make-secrets.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "deploy" / "make-secrets.sh", script)
    for _ in range(2):
        subprocess.run(["sh", script], check=True, capture_output=True)
    made = tmp_path / ".secrets"
    assert {path.name for path in made.iterdir()} == {Path(one["file"]).name for one in COMPOSE["secrets"].values()}
    assert made.stat().st_mode & 0o777 == 0o700
    service, migrate = (tomllib.loads((made / name).read_text()) for name in ("service.toml", "migrate.toml"))
    assert service.keys() == {"database_url", "ticket_key", "digest_key"}
    assert migrate == {**service, "database_owner_url": migrate["database_owner_url"]}
    assert (made / "owner_password").read_text() in migrate["database_owner_url"]
    assert len({service["ticket_key"], service["digest_key"]}) == 2
    assert len(service["ticket_key"]) == 64
    assert sorted(path.name for path in tmp_path.iterdir()) == [".secrets", "docs"]
