"""Five evaluators of the rules on at least 100,000 random cases; some minutes on one core.

    python tests/benchmarks/differential.py [--cases N] [--seed N] [--json FILE]

A case is one policy, principal, action, access class and moment. At the reader's present all five are asked: compiled
scope, check of one resource, Casbin on the whole policy, rows shown under a real ticket, and the oracle; these are the
cases that N counts. At other moments the four are asked that can be. A disagreement is shrunk, printed, and exits 1.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import given, seed, settings

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from property.policies import STEADY, Given, policies  # noqa: E402 (the repository is on the path only now)
from property.stage import Stage, Tally, judge, staged  # noqa: E402
from support.postgres import RunCluster  # noqa: E402

CASES = 100_000
BATCH = 50  # policies of one seed


def run(stage: Stage, cases: int, first_seed: int) -> Tally:
    """Judge policies until so many cases went to all five evaluators. AssertionError, shrunk, when they disagree."""
    tally, number = Tally(), first_seed
    while tally.by_five < cases:

        @seed(number)
        @settings(STEADY, max_examples=BATCH)
        @given(policies())
        def agree(policy: Given) -> None:
            assert judge(stage, policy, tally) == []

        agree()
        number += 1
        print(f"seed {number}: {tally.by_five} cases by five", file=sys.stderr)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=CASES, help="cases that all five evaluators are asked")
    parser.add_argument("--seed", type=int, default=1, help="of the first batch; the next has the next")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stacks-differential-") as folder:
        run_dir = Path(folder).resolve()
        run_dir.chmod(0o711)  # the embedded Postgres runs as an account of its own
        with (
            RunCluster(run_dir / "data").running() as cluster,
            cluster.template() as template,
            cluster.empty(template=template) as database,
            staged(database) as stage,
        ):
            tally = run(stage, options.cases, options.seed)
    figures = {
        "policies": len(tally.agreed),
        "cases": tally.cases,
        "cases_by_all_five": tally.by_five,
        "permitted": tally.permitted,
        "disagreements": 0,  # the first would have ended the run
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(figures, indent=1))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
