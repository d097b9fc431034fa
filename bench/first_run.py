"""The first run of a new user: seconds and bytes of each step of `make up` in a fresh clone.

python -m bench.first_run

What is committed is cloned into an empty directory, with empty directories for pip's cache, for
compilers' caches and for clusters. The packages come from the package index, so the figures depend
on the network, too.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import aligned
from bench.saved import here_and_now, save

_ROOT = Path(__file__).parent.parent
_CLONE = "git clone"
# A step begins when `make up` prints a line that starts so.
_STEPS = {
    "Making .venv": "python -m venv",
    "Installing the packages": "the packages of requirements.lock",
    "Installing a C compiler": "a C compiler (ziglang)",
    "Compiling": "compile the driver and the limiter",
    "Starting cluster": "gpupool up",
    'Cluster "': "its example",
}
_MB = 1_000_000


class Step(NamedTuple):
    name: str
    seconds: float
    megabytes: float  # that it has added


def measure_first_run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="first-") as scratch:
        clone = Path(scratch, "gpupool")
        began = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", f"file://{_ROOT}", str(clone)], check=True)
        cloned = Step(_CLONE, time.monotonic() - began, _megabytes(scratch))
        environment = _environment(scratch)
        try:
            steps = [cloned, *_make_up(clone, environment, scratch)]
        finally:
            gpupool = clone / ".venv/bin/gpupool"
            if gpupool.exists():
                subprocess.run([str(gpupool), "down"], env=environment, check=False)
        packages = _installed(clone)
    return {
        "steps": [step._asdict() for step in steps],
        "seconds": sum(step.seconds for step in steps),
        "megabytes": sum(step.megabytes for step in steps),
        "packages": packages,
    }


def _installed(clone: Path) -> int:
    """The packages of the lock files: not gpupool itself, nor what the virtual environment has."""
    found = clone.glob(".venv/lib/python*/site-packages/*.dist-info")
    names = {path.name.partition("-")[0] for path in found}
    return len(names - {"gpupool", "pip", "setuptools"})


def _environment(scratch: str) -> dict[str, str]:
    """Nothing that an earlier run has left is found."""
    home = Path(scratch, "home")
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    return kept | {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GPUPOOL_HOME": str(home / "clusters"),
        "PIP_NO_CACHE_DIR": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _make_up(clone: Path, environment: dict[str, str], scratch: str) -> list[Step]:
    make = subprocess.Popen(
        ["make", "up"],
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert make.stdout is not None
    steps, said = _timed(make.stdout, scratch)
    if make.wait():
        raise RuntimeError(f"make up failed:\n{said[-2000:]}")
    return steps


def _timed(lines: Iterable[str], scratch: str) -> tuple[list[Step], str]:
    """The steps, each until the next one begins; and all lines."""
    steps: list[Step] = []
    name, began_s, before = "make", time.monotonic(), _megabytes(scratch)

    def ended() -> None:
        nonlocal began_s, before
        now, there = time.monotonic(), _megabytes(scratch)
        steps.append(Step(name, now - began_s, there - before))
        began_s, before = now, there

    said = ""
    for line in lines:
        said += line
        print(f"  {line}", end="", flush=True)
        found = next((title for start, title in _STEPS.items() if line.startswith(start)), name)
        if found != name:
            ended()
            name = found
    ended()
    return steps, said


def _megabytes(directory: str) -> float:
    """Of all files below it; what ends meanwhile does not count."""
    total = 0
    for where, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except FileNotFoundError:
                continue
    return total / _MB


def main() -> None:
    figures = here_and_now()
    figures["first_run"] = found = measure_first_run()
    rows = [("step", "seconds", "MB")]
    rows += [
        (each["name"], f"{each['seconds']:.1f}", f"{each['megabytes']:.1f}")
        for each in found["steps"]
    ]
    total = f"all, {found['packages']} packages"
    rows.append((total, f"{found['seconds']:.1f}", f"{found['megabytes']:.1f}"))
    print(aligned(rows))
    save(figures)


if __name__ == "__main__":
    main()
