"""The benchmarks are not run by tests; they must at least begin."""

import subprocess
import sys

from tools.environments import ROOT


def test_all_parts_of_the_benchmark_can_be_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import bench.__main__"], cwd=ROOT, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
