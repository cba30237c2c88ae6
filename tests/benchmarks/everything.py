"""Every benchmark, one after the other, so that none disturbs another; the better part of an hour on two cores.

    python tests/benchmarks/everything.py [--out FOLDER] [NAME …] [-- ARGUMENTS]

Without names: all. What stands after `--` goes to each benchmark. Figures go to build/bench/, one JSON file a
benchmark, and machine.json with what they were measured on. Exits 1 when a benchmark missed a target or failed. Those
that need the public data sets (../shared/data beside the repository, or where STACKS_SHARED_DATA says) are skipped
where these are absent, which is said and is no failure.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("STACKS_SHARED_DATA") or ROOT.parent / "shared" / "data")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A script beside this one: how it is called, whether it can write JSON, and the folder of `DATA` it reads."""

    name: str
    arguments: tuple[str, ...] = ()
    writes: bool = True
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one went: `passed`, `failed` or `skipped`, how long it took, and the load average (1 minute) around it."""

    name: str
    outcome: str
    seconds: int
    load_before: float
    load_after: float


EVERY = (
    Benchmark("compile_cost"),
    Benchmark("timing_attack"),
    Benchmark("acl_matrices", ("--all",), needs="acl"),
    Benchmark("differential"),
    Benchmark("calibrate_floor", writes=False, needs="sets"),
)


def run(one: Benchmark, out: Path, more: list[str]) -> Outcome:
    """Run one, its output going where ours goes."""
    before, began = _load(), time.monotonic()
    print(f"\n== {one.name}", flush=True)
    if one.needs and not (DATA / one.needs).is_dir():
        print(f"skipped: no {DATA / one.needs}; STACKS_SHARED_DATA names the folder that holds {one.needs}/")
        return Outcome(one.name, "skipped", 0, before, before)
    json_file = ("--json", str(out / f"{one.name}.json")) if one.writes else ()
    script = Path(__file__).with_name(f"{one.name}.py")
    command = (sys.executable, str(script), *one.arguments, *json_file, *more)
    # A model that uses every core would disturb the Postgres that is measured.
    ended = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    outcome = "failed" if ended.returncode else "passed"
    return Outcome(one.name, outcome, round(time.monotonic() - began), before, _load())


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _divided(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before `--`, and what after it."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(one.name for one in EVERY)}")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where figures go")
    ours, more = _divided(sys.argv[1:])
    options = parser.parse_args(ours)
    unknown = set(options.names) - {one.name for one in EVERY}
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    options.out.mkdir(parents=True, exist_ok=True)
    found = [run(one, options.out, more) for one in EVERY if not options.names or one.name in options.names]
    print(f"\n{'benchmark':16} {'outcome':8} {'seconds':>7} {'load before':>12} {'after':>6}")
    for one in found:
        print(f"{one.name:16} {one.outcome:8} {one.seconds:7} {one.load_before:12} {one.load_after:6}")
    figures = {**machine(), "benchmarks": [asdict(one) for one in found]}
    (options.out / "machine.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    failed = [one.name for one in found if one.outcome == "failed"]
    sys.exit(f"missed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
