"""The table of `make coverage`, and when it fails."""

from pathlib import Path
from typing import Any

import pytest

from tools.coverage import PACKAGES, ROOT, rows, table


def summary(lines: int, branches: int) -> dict[str, Any]:
    return {
        "summary": {
            "covered_lines": lines,
            "num_statements": 100,
            "covered_branches": branches,
            "num_branches": 100,
        }
    }


def report(*, branches: int = 100) -> dict[str, Any]:
    return {
        "files": {
            "src/gpupool/engine/a.py": summary(100, branches),
            "src/gpupool/engine/filters/b.py": summary(98, 100),
            "src/gpupool/agent/run.py": summary(0, 0),
        }
    }


def test_files_of_a_package_and_of_its_subpackages_count_together() -> None:
    (row,) = rows(report(), ["gpupool.engine"])
    assert (row.files, row.lines.covered, row.lines.total) == (2, 198, 200)
    assert row.is_enough


def test_too_few_branches_are_too_little_even_if_all_lines_are_covered() -> None:
    (row,) = rows(report(branches=89), ["gpupool.engine"])
    assert row.branches.percent == 94.5
    assert not row.is_enough
    assert list(table([row]))[-1].endswith("189/200  94.5 %   below 95 %")


def test_a_package_that_was_not_measured_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"no file of gpupool\.moved was measured"):
        rows(report(), ["gpupool.moved"])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_measured_package_and_its_tests_are_there(package: str) -> None:
    assert (ROOT / "src" / Path(*package.split("."))).is_dir()
    assert (ROOT / PACKAGES[package]).is_dir()
