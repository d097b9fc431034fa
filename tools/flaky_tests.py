"""Prints the failed tests that may be run a second time: .ci/flaky-tests lists them.

Run by .ci/run, after a test run that failed. It prints nothing and fails when the last run has no
failed tests, or when a test failed that is not listed.
"""

import datetime
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LIST = ROOT / ".ci" / "flaky-tests"
FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"


class BadList(ValueError):
    """The list is not understood; the message says which line."""


class Flaky(NamedTuple):
    test: str  # its id without parameters
    since: datetime.date
    cause: str


def listed(text: str) -> list[Flaky]:
    """Raises BadList."""
    lines = [line.strip() for line in text.splitlines()]
    return [_entry(line) for line in lines if line and not line.startswith("#")]


def _entry(line: str) -> Flaky:
    columns = [column.strip() for column in line.split("|", 2)]
    if len(columns) != 3 or not all(columns):
        raise BadList(f'wanted "test id | date | cause", found: {line}')
    try:
        return Flaky(columns[0], datetime.date.fromisoformat(columns[1]), columns[2])
    except ValueError as error:
        raise BadList(f"wanted a date such as 2026-11-16, found: {columns[1]}") from error


def unlisted(failed: Iterable[str], flaky: Iterable[Flaky]) -> list[str]:
    """The failed tests for which there is no second try."""
    known = {each.test for each in flaky}
    return [test for test in failed if test.partition("[")[0] not in known]


def main() -> int:
    failed: list[str] = list(json.loads(FAILED.read_bytes())) if FAILED.exists() else []
    try:
        broken = unlisted(failed, listed(LIST.read_text(encoding="utf-8")))
    except BadList as error:
        print(f".ci/flaky-tests: {error}", file=sys.stderr)
        return 1
    for test in broken:
        print(f"Failed, and not in .ci/flaky-tests: {test}", file=sys.stderr)
    if broken or not failed:
        return 1
    print("\n".join(failed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
