"""Replay access matrices of real organisations; seconds for the small ones, a minute or so with the large one.

    python tests/benchmarks/acl_matrices.py [--all] [--json FILE]

Prints, for each matrix, how many pairs of user and document it has, and how many were wrongly granted or denied by the
compiled scope or by row-level security. Exits 1 unless none were.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from property.matrices import ACL, LARGE, SMALL, Figures, read, replayed  # noqa: E402 (the path is set only now)
from support.postgres import RunCluster  # noqa: E402


def run(names: tuple[str, ...], run_dir: Path) -> list[Figures]:
    """Replay each matrix in a database of its own."""
    found = []
    with RunCluster(run_dir / "data").running() as cluster, cluster.template() as template:
        for name in names:
            matrix = read(name)
            with cluster.empty(template=template) as database:
                found.append(replayed(database, matrix, matrix.users))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--all", action="store_true", help="the large matrix too")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    names = (*SMALL, *LARGE) if options.all else SMALL
    if not ACL.is_dir():
        sys.exit(f"no matrices in {ACL}; STACKS_SHARED_DATA names the folder that holds acl/")
    with tempfile.TemporaryDirectory(prefix="stacks-matrices-") as folder:
        run_dir = Path(folder).resolve()
        run_dir.chmod(0o711)  # the embedded Postgres runs as an account of its own
        found = run(names, run_dir)
    print(f"{'matrix':16} {'users':>6} {'documents':>10} {'pairs':>8} {'false grants':>13} {'false denials':>14}")
    for one in found:
        row = f"{one.matrix:16} {one.users:6} {one.documents:10} {one.pairs:8}"
        print(f"{row} {one.false_grants:13} {one.false_denials:14}")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")
    sys.exit("somebody finds what the matrix does not say" if any(one.wrong for one in found) else 0)


if __name__ == "__main__":
    main()
