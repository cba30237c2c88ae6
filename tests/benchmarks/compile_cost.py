"""What compiling a scope costs, and that it does not depend on how many others there are; a minute or two.

    python tests/benchmarks/compile_cost.py [--rounds N] [--json FILE]

A large instance (10,000 users, 1,000 roles, 100,000 grants) and a small one (100 users, 40 roles, 4,000 grants) stand
side by side, and are asked in turn. Their callers hold equally many rules on equally many classes: two roles, each
nested in another, each of a hundred grants. Cold is a compilation, warm one that is kept. Exits 1 when the large one's
median exceeds 5 ms cold or 0.5 ms warm, or 1.3 times the small one's.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from uuid import UUID, uuid5

import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from property.matrices import copy_rows  # noqa: E402 (the repository is on the path only now)
from support.postgres import TICKET_KEY, RunCluster, RunDatabase  # noqa: E402

from app.authz.compile import Authority, compile_scope  # noqa: E402
from app.authz.rules import load, party  # noqa: E402
from app.db.engine import create_engine  # noqa: E402
from app.db.session import Database, Transaction  # noqa: E402
from app.db.tickets import TicketPrinter  # noqa: E402
from app.domain.access import Action  # noqa: E402
from app.domain.principal import LOCAL_ISSUER, Principal  # noqa: E402

COLD_MS, WARM_MS, RATIO = 5.0, 0.5, 1.3
COLLECTIONS, LABELS = 400, 5  # a class for each label, and one without: 2,400
WARM_CALLS = 20  # timed together: one is too short
FAMILY = 10  # roles, of which the first holds the others
RESOURCES = 50  # of a role, each for two actions
_SPACE = UUID(int=20261130)


@dataclass(frozen=True, slots=True)
class Size:
    """How many there are."""

    users: int
    roles: int

    def roles_of(self, user: int) -> list[int]:
        """One to three roles of different families; every third user has two, and is measured."""
        rng = random.Random(user)
        families = rng.sample(range(self.roles // FAMILY), user % 3 + 1)
        return [family * FAMILY + rng.randrange(1, FAMILY) for family in families]


LARGE, SMALL = Size(10_000, 1_000), Size(100, 40)


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of one instance: medians, 95th percentiles, and the part of a cold one that is the query."""

    users: int
    roles: int
    grants: int
    rules: float
    classes: float
    load_p50: float
    cold_p50: float
    cold_p95: float
    warm_p50: float
    warm_p95: float


def fill(database: RunDatabase, size: Size) -> int:
    """Write the rows; how many grants there are."""
    shelves = [uuid5(_SPACE, f"shelf-{number}") for number in range(COLLECTIONS)]
    with database.superuser() as behind:
        copy_rows(
            behind,
            "collections",
            "id slug title owner",
            ((id_, f"shelf-{number}", "A shelf", "nobody") for number, id_ in enumerate(shelves)),
        )
        labels = [[], *([f"label-{number}"] for number in range(LABELS))]
        copy_rows(behind, "access_classes", "collection_id labels", ((id_, one) for id_ in shelves for one in labels))
        copy_rows(behind, "memberships", "member_kind member container_kind container granted_by", _memberships(size))
        copy_rows(
            behind,
            "grants",
            "subject_kind subject action effect resource_kind collection_id label granted_by",
            _grants(size, shelves),
        )
        behind.execute("ANALYZE")
        return _count(behind)


def _count(behind: "psycopg.Connection[tuple[object, ...]]") -> int:
    row = behind.execute("SELECT count(*) FROM grants").fetchone()
    return int(str(row[0])) if row else 0


def _memberships(size: Size) -> Iterator[tuple[str, ...]]:
    for user in range(size.users):
        for role in size.roles_of(user):
            yield "principal", f"user-{user}", "role", f"role-{role}", "test"
    for role in range(size.roles):
        if role % FAMILY:
            yield "role", f"role-{role}", "role", f"role-{role - role % FAMILY}", "test"


def _grants(size: Size, shelves: list[UUID]) -> Iterator[tuple[object, ...]]:
    for role in range(size.roles):
        rng = random.Random(role)
        for number in range(RESOURCES):
            label = f"label-{rng.randrange(LABELS)}" if number % 5 else None
            effect = "deny" if number % 25 == 1 else "allow"
            kind, shelf = "label" if label else "collection", rng.choice(shelves)
            for action in (Action.SEARCH, Action.OPEN):
                yield "role", f"role-{role}", action.value, effect, kind, shelf, label, "test"


class Watch:
    """One instance, and how long it took each time."""

    def __init__(self, database: RunDatabase, size: Size, grants: int) -> None:
        engine = create_engine(database.service_url, pool_size=1)
        self.database = Database(engine, check_tickets=TicketPrinter(TICKET_KEY).check)
        self._size, self._grants = size, grants
        self._authority = Authority()
        self._took: dict[str, list[float]] = {name: [] for name in ("load", "cold", "warm", "rules", "classes")}

    async def ask(self, number: int) -> None:
        """Compile for some caller with two roles, cold and warm."""
        user = random.Random(number).randrange(self._size.users // 3) * 3 + 1
        caller = Principal(LOCAL_ISSUER, f"user-{user}")
        await self.database.read(partial(self._timed, caller=caller))

    async def _timed(self, transaction: Transaction, caller: Principal) -> None:
        moments = [time.perf_counter()]
        loaded = await load(transaction, party(caller), Action.SEARCH)
        moments.append(time.perf_counter())
        scope = await compile_scope(transaction, caller, Action.SEARCH)
        moments.append(time.perf_counter())
        await self._authority.compile(transaction, caller, Action.SEARCH)
        moments.append(time.perf_counter())
        for _ in range(WARM_CALLS):
            kept = await self._authority.compile(transaction, caller, Action.SEARCH)
        moments.append(time.perf_counter())
        assert kept == scope
        spent = [1000 * (after - before) for before, after in pairwise(moments)]
        values = {"load": spent[0], "cold": spent[1], "warm": spent[3] / WARM_CALLS}
        values |= {"rules": len(loaded.rules.rules), "classes": len(scope.classes())}
        for name, value in values.items():
            self._took[name].append(value)

    def cost(self) -> Cost:
        """What was measured."""
        p95 = {name: quantiles(took, n=20)[-1] for name, took in self._took.items()}
        p50 = {name: median(took) for name, took in self._took.items()}
        return Cost(
            self._size.users,
            self._size.roles,
            self._grants,
            p50["rules"],
            p50["classes"],
            *(round(one, 4) for one in (p50["load"], p50["cold"], p95["cold"], p50["warm"], p95["warm"])),
        )


async def measure(databases: tuple[RunDatabase, RunDatabase], grants: tuple[int, int], rounds: int) -> list[Cost]:
    """Ask the large and the small instance in turn."""
    watches = [Watch(*each) for each in zip(databases, (LARGE, SMALL), grants, strict=True)]
    for number in range(rounds):
        for watch in watches if number % 2 else watches[::-1]:
            await watch.ask(number)
    for watch in watches:
        await watch.database.close()
    return [watch.cost() for watch in watches]


def report(large: Cost, small: Cost) -> bool:
    """Print both; whether the large one keeps within the bounds."""
    names = list(asdict(large))
    print(" ".join(f"{name:>9}" for name in names))
    for cost in (large, small):
        print(" ".join(f"{value:9g}" for value in asdict(cost).values()))
    cold, warm = large.cold_p50 / small.cold_p50, large.warm_p50 / small.warm_p50
    print(f"large to small: cold {cold:.2f}, warm {warm:.2f}; bounds: {COLD_MS} ms, {WARM_MS} ms, {RATIO}")
    return large.cold_p50 < COLD_MS and large.warm_p50 < WARM_MS and cold < RATIO and warm < RATIO


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=1000, help="compilations of each instance")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stacks-compile-") as folder:
        run_dir = Path(folder).resolve()
        run_dir.chmod(0o711)  # the embedded Postgres runs as an account of its own
        with (
            RunCluster(run_dir / "data").running() as cluster,
            cluster.template() as template,
            cluster.empty(template=template) as many,
            cluster.empty(template=template) as few,
        ):
            grants = fill(many, LARGE), fill(few, SMALL)
            large, small = asyncio.run(measure((many, few), grants, options.rounds))
    kept = report(large, small)
    figures = json.dumps({"large": asdict(large), "small": asdict(small)}, indent=1)
    print(figures)
    if options.json:
        options.json.write_text(figures + "\n", encoding="utf-8")
    sys.exit(0 if kept else "compiling costs more than it may")


if __name__ == "__main__":
    main()
