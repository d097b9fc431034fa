"""`make test-sanitizers` says in one sentence what it is missing."""

import subprocess
import sys
from pathlib import Path

from tests.native.sanitizers import ROOT


def run_with_path(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.native.sanitizers"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PATH": str(path)},
    )


def test_without_a_compiler_it_says_so(tmp_path: Path) -> None:
    done = run_with_path(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "The sanitizers need gcc or clang, and neither is on the PATH "
        "(on Debian: apt install gcc).\n"
    )


def test_without_the_runtime_libraries_it_says_so(tmp_path: Path) -> None:
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\necho libasan.so\n", encoding="ascii")  # not found: only a name
    compiler.chmod(0o755)
    done = run_with_path(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"{compiler} has no runtime libraries of ASan and UBSan (Debian: libasan and libubsan).\n"
    )
