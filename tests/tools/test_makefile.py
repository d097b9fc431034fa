"""`make help`: every target in one column, what it does in the next."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="there is no make")


def helped() -> list[str]:
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_what_targets_do_stands_in_one_column() -> None:
    found = [re.fullmatch(r"(  make [a-z-]+ +)(\S.*)", line) for line in helped()]
    assert len({len(line[1]) for line in found if line}) == 1
    assert all(line and line[1].endswith("  ") for line in found)


def test_every_target_is_listed_and_fits_80_columns() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE)
    assert [line.split()[1] for line in helped()] == targets
    assert max(map(len, helped())) <= 80
