"""What a caller could learn from the latencies of its own calls; a quarter of an hour on one core.

    python tests/benchmarks/timing_attack.py [--samples N] [--json FILE]

A scripted attacker calls two kinds of things in random order (a word that hidden documents hold against one that
nothing holds; a forbidden name or id against an unknown one), learns on half of the latencies which side of which
threshold tells the kinds apart, and guesses the other half; then the other way round. 50 % is guessing blind. The same
attacker makes the same searches of a naive index, one over everybody's chunks whose finds are filtered afterwards: it
must win there, or it could not lose here. Exits 1 when either fails.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from attacker import Attack, Call, attack  # noqa: E402 (the repository is on the path only now)
from hidden_library import WORDS, Library, furnish, naive_index  # noqa: E402
from security.desk import Desk, opened  # noqa: E402
from support.postgres import TICKET_KEY, RunCluster  # noqa: E402
from support.world import World  # noqa: E402

from app import bootstrap  # noqa: E402
from app.analysis.embedder import Embedder  # noqa: E402
from app.config import Settings  # noqa: E402

# With 1,000 samples a side, somebody who guesses blind is right 48..52 % of the time in nineteen attacks of twenty.
SAMPLES, LEAST_SAMPLES = 1000, 400
BLIND, MARGIN, DETECTED = 0.5, 0.05, 0.55

_GRANT = {"action": "search", "collection": "{}", "principal": "eve"}
_TOOL = {"query": "a word", "collection": "{}"}
# What is called with a collection's name: method, path and JSON; a tool has no method.
NAMES: tuple[tuple[str, str, str, dict[str, object]], ...] = (
    ("search in a collection", "POST", "/api/v1/search", {**_TOOL}),
    ("search in a collection, MCP", "", "search_documents", {**_TOOL}),
    ("a collection", "GET", "/api/v1/collections/{}", {}),
    ("a collection's documents", "GET", "/api/v1/collections/{}/documents", {}),
    ("a collection's versions", "GET", "/api/v1/collections/{}/versions", {}),
    ("upload", "POST", "/api/v1/collections/{}/documents", {"files": ""}),
    ("publish", "POST", "/api/v1/collections/{}/publish", {"wait": False}),
    ("grant", "POST", "/api/v1/grants", {**_GRANT}),
    ("explain", "GET", "/api/v1/access/explain?principal=eve&action=search&collection={}", {}),
    ("who", "GET", "/api/v1/access/who?action=search&collection={}", {}),
)
IDS = (
    ("a document", "GET", "/api/v1/documents/{}"),
    ("a version", "GET", "/api/v1/documents/{}/versions/1"),
    ("a text", "GET", "/api/v1/documents/{}/versions/1/text"),
    ("an original", "GET", "/api/v1/documents/{}/versions/1/original"),
    ("removal", "DELETE", "/api/v1/documents/{}"),
    ("a job", "GET", "/api/v1/jobs/{}"),
    ("explain a document", "GET", "/api/v1/access/explain?principal=eve&action=search&document={}"),
    ("who, of a document", "GET", "/api/v1/access/who?document={}"),
)


class Attacks:
    """Everything that is tried on a library, each with `samples` calls a side."""

    def __init__(self, library: Library, desk: Desk, samples: int) -> None:
        self._library = library
        self._desk = desk
        self._samples = samples

    async def naive(self) -> list[Attack]:
        """Words, on the index that must not exist."""
        with naive_index():
            return [await self._words("naive index, word in 30 % of hidden chunks", self._library.often)]

    async def ours(self) -> list[Attack]:
        """Words, names and ids, on the instance as it is."""
        library = self._library
        found = [
            await self._words("search, word in 30 % of hidden chunks", library.often),
            await self._words("search, word in 0.1 % of hidden chunks", library.seldom),
        ]
        unknown = [f"vault-{place:03}" for place in range(500, 500 + WORDS)]
        for name, method, path, body in NAMES:
            how = partial(self._call, method, path, body)
            found.append(await self._pair(f"{name}: forbidden or unknown", how, library.forbidden, unknown))
        nothing = [str(uuid4()) for _ in range(self._samples)]
        for name, method, path in IDS:
            hidden = [str(one) for one in (library.hidden_jobs if "/jobs/" in path else library.hidden)]
            how = partial(self._call, method, path, {})
            found.append(await self._pair(f"{name}: hidden or unknown", how, hidden, nothing))
        return found

    async def _words(self, name: str, words: list[str]) -> Attack:
        body = {"query": f"{{}} {' '.join(self._library.common)}"}
        return await self._pair(name, partial(self._call, "POST", "/api/v1/search", body), words, self._library.absent)

    async def _pair(self, name: str, how: Callable[[str], Call], first: list[str], second: list[str]) -> Attack:
        found = await attack(name, [how(one) for one in first], [how(one) for one in second], self._samples)
        print(_row(found), flush=True)
        return found

    def _call(self, method: str, path: str, body: Mapping[str, object], asked: str) -> Call:
        filled = {key: value.format(asked) if isinstance(value, str) else value for key, value in body.items()}
        if not method:
            return lambda: self._desk.tool(self._library.token, path, filled)
        rest: dict[str, object] = {"json": filled} if filled else {}
        if "files" in filled:
            rest = {"files": {"file": ("note.txt", b"a note", "text/plain")}}
        return lambda: self._desk.ask(self._library.token, method, path.format(asked), **rest)


def _row(one: Attack) -> str:
    return f"{one.name:52} {one.right:6.1%} {one.first_ms:9.3f} {one.second_ms:9.3f} {2 * one.samples:6}"


async def run(samples: int, run_dir: Path, model_dir: Path) -> tuple[list[Attack], list[Attack]]:
    """The attacks on the naive index and on the instance, each with `samples` calls a side; prints each as it ends."""
    embedder = Embedder.load(model_dir)
    with (
        RunCluster(run_dir / "data").running() as cluster,
        cluster.template() as template,
        cluster.empty(template=template) as database,
    ):
        settings = Settings(data_dir=run_dir / "instance", ticket_key=TICKET_KEY)
        services = bootstrap.build(settings, database.service_url, embedder)
        library = await furnish(await World(services).begin(), database, embedder)
        print(f"{'attack':52} {'right':>6} {'median ms of either':>19} {'calls':>6}")
        async with opened(services) as desk:
            attacks = Attacks(library, desk, samples)
            found = await attacks.naive(), await attacks.ours()
        await services.database.close()
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"calls a side, at least {LEAST_SAMPLES}")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    model_dir = Path(os.environ.get("STACKS_MODEL_DIR") or ROOT / ".cache" / "models")
    with tempfile.TemporaryDirectory(prefix="stacks-timing-") as folder:
        run_dir = Path(folder).resolve()
        run_dir.chmod(0o711)  # the embedded Postgres runs as an account of its own
        naive, ours = asyncio.run(run(max(options.samples, LEAST_SAMPLES), run_dir, model_dir))
    if options.json:
        figures = {"naive": [asdict(one) for one in naive], "ours": [asdict(one) for one in ours]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    leaks = [one.name for one in ours if abs(one.right - BLIND) > MARGIN]
    if any(one.right <= DETECTED for one in naive):
        sys.exit("the attacker does not even see through the naive index: its figures mean nothing")
    sys.exit(f"latencies tell: {'; '.join(leaks)}" if leaks else 0)


if __name__ == "__main__":
    main()
