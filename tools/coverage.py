"""Measures line and branch coverage of the packages that decide about GPUs, and shows a table.

Run: make coverage. It fails when a package is below the limit, in lines or in branches.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LEAST_PERCENT = 95.0
# Each package, and the tests that are run for it.
PACKAGES = {
    "gpupool.engine": "tests/engine",
    "gpupool.scheduler": "tests/scheduler",
    "gpupool.admission": "tests/admission",
    "gpupool.agent": "tests/agent",
}


@dataclass(frozen=True, slots=True)
class Share:
    covered: int
    total: int

    @property
    def percent(self) -> float:
        return 100 * self.covered / self.total if self.total else 100.0

    def __str__(self) -> str:
        return f"{self.covered}/{self.total} {self.percent:5.1f} %"


@dataclass(frozen=True, slots=True)
class Row:
    package: str
    files: int
    lines: Share
    branches: Share

    @property
    def is_enough(self) -> bool:
        return min(self.lines.percent, self.branches.percent) >= LEAST_PERCENT


def rows(report: Mapping[str, Any], packages: Iterable[str]) -> list[Row]:
    """One for each package, from the JSON report of coverage.py."""
    return [_row(package, report["files"]) for package in packages]


def _row(package: str, files: Mapping[str, Any]) -> Row:
    folder = f"/{package.replace('.', '/')}/"
    found = [each["summary"] for path, each in files.items() if folder in f"/{path}"]
    if not found:
        raise LookupError(f"no file of {package} was measured")

    def share(covered: str, total: str) -> Share:
        return Share(sum(each[covered] for each in found), sum(each[total] for each in found))

    return Row(
        package,
        len(found),
        share("covered_lines", "num_statements"),
        share("covered_branches", "num_branches"),
    )


def table(found: Iterable[Row]) -> Iterator[str]:
    yield f"{'package':<20} {'files':>5} {'lines':>20} {'branches':>20}"
    for row in found:
        shown = f"{row.package:<20} {row.files:>5} {row.lines!s:>20} {row.branches!s:>20}"
        yield shown if row.is_enough else f"{shown}   below {LEAST_PERCENT:.0f} %"


def measure() -> Any:
    """Run the tests and return the report. Raises CalledProcessError when a test fails."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "coverage.json"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--hypothesis-profile=ci"]
        command += ["-m", "not slow and not kubernetes", "--cov-branch"]
        command += [f"--cov={package}" for package in PACKAGES]
        command += [f"--cov-report=json:{report}", *PACKAGES.values()]
        data = {"COVERAGE_FILE": str(Path(directory) / "data")}
        subprocess.run(command, cwd=ROOT, check=True, env=os.environ | data)
        return json.loads(report.read_bytes())


def main() -> int:
    try:
        found = rows(measure(), PACKAGES)
    except subprocess.CalledProcessError as error:
        return error.returncode
    print("\n".join(table(found)))
    return 0 if all(row.is_enough for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
