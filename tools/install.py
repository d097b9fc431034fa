"""Installs what a lock file says, and shows how far it is. Imports the standard library only: it
runs before anything is installed.

    .venv/bin/python tools/install.py requirements.lock
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_STEP = re.compile(r"(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9._-]+)")
# The lock file names every package. Where one wants an extra of another ("coverage[toml]>=7"), pip
# before 23.3 would otherwise look for that anew, find a newer version, and stop for want of a hash.
_PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--require-hashes")
_EVERY_S = 10.0  # a line of progress, where it does not go to a terminal


class Step(NamedTuple):
    number: int
    total: int
    what: str  # the package that pip begins with, or what it does at the end


def locked(text: str) -> int:
    """How many packages the lock file names; those of other systems count, too."""
    return len(re.findall(r"(?m)^[A-Za-z0-9._-]+==", text))


def steps(lines: Iterable[str], total: int) -> Iterator[Step]:
    """`total`: packages of the lock file. pip first says which of them are not for this system."""
    seen: set[str] = set()
    for line in lines:
        found = _STEP.match(line)
        if line.startswith("Ignoring "):
            total -= 1
        elif found and found[1] not in seen:
            seen.add(found[1])
            yield Step(len(seen), total, found[1])
        elif line.startswith("Installing collected packages"):
            yield Step(len(seen), total, "writing the files")


def main(lock: Path) -> int:
    total, kept = locked(lock.read_text(encoding="utf-8")), []
    pip = subprocess.Popen(
        [sys.executable, *_PIP, "-r", str(lock)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert pip.stdout is not None

    def lines() -> Iterator[str]:
        for line in pip.stdout or ():
            kept.append(line)
            yield line

    shown_s = time.monotonic()
    for step in steps(lines(), total):
        words = f"  {step.number} of {step.total} packages: {step.what}"
        if sys.stdout.isatty():
            sys.stdout.write(f"\r\x1b[K{words}")
        elif time.monotonic() - shown_s > _EVERY_S:
            shown_s = time.monotonic()
            sys.stdout.write(f"{words}\n")
        sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write("\r\x1b[K")
    code = pip.wait()
    if code:
        sys.stderr.write("".join(kept[-20:]))
        sys.stderr.write(f"The packages of {lock} could not be installed.\n")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
