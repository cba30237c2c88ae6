"""`python -m acceptance --credentials FILE`: run the suite against a running server and write the protocol."""

import argparse
import asyncio
import sys
from pathlib import Path

from acceptance.client import McpCaller, NoAnswerError, open_rest
from acceptance.corpus import check_documents, load_originals
from acceptance.credentials import Credentials, load_credentials
from acceptance.protocol import Head, Row, write_protocol
from acceptance.questions import Suite, SuiteError, load_suite
from acceptance.run import OWNER, Run, head

PASSED, FAILED, UNUSABLE = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the suite. Returns 0 when all passed, 1 when any failed, 2 for wrong usage or no server."""
    options = _options(arguments)
    try:
        credentials, suite = load_credentials(options.credentials), load_suite(options.questions)
        for role in {OWNER, *(question.role for question in suite.questions)}:
            credentials.token(role)
        originals = load_originals(options.corpus or options.questions.with_name("corpus.toml"))
        check_documents(suite.questions, originals)
        summary, rows = asyncio.run(_ask(credentials, suite, originals))
        write_protocol(options.out, summary, rows)
    except (SuiteError, NoAnswerError, OSError) as error:
        print(f"acceptance: {error}", file=sys.stderr)
        return UNUSABLE
    return _report(rows, options.out)


async def _ask(credentials: Credentials, suite: Suite, originals: dict[tuple[str, int], str]) -> tuple[Head, list[Row]]:
    async with open_rest(credentials) as rest:
        run = Run(suite, McpCaller(credentials), rest)
        facts = await run.facts()
        rows = [row async for row in run.rows(facts, originals)]
    return head(credentials.url, facts, suite), rows


def _report(rows: list[Row], out: Path) -> int:
    failed = [row for row in rows if row.faults]
    for row in failed:
        print(f"FAIL {row.id}")
        for fault in row.faults:
            print(f"     {fault}")
    print(f"{len(rows) - len(failed)} of {len(rows)} passed; protocol in {out}")
    return FAILED if failed else PASSED


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m acceptance", description="Ask a running server fixed questions.")
    parser.add_argument("--credentials", type=Path, required=True, help="DATA_DIR/demo/credentials.json")
    parser.add_argument("--questions", type=Path, default=Path("fixtures/questions.toml"))
    parser.add_argument("--corpus", type=Path, help="default: corpus.toml beside the questions")
    parser.add_argument("--out", type=Path, default=Path("acceptance-report"))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
