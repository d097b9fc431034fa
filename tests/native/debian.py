"""Downloads programs of Debian for tests. They run from a cache and are never installed.

apt-get downloads them from the mirror that this machine uses. Nothing is written into the checkout:
packages go to ${GPUPOOL_CACHE:-${XDG_CACHE_HOME:-~/.cache}/gpupool}/debian. Without apt-get or
without a network, the tests that need a program are skipped with a warning.
"""

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

_SECONDS = 90
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class Program(NamedTuple):
    suite: str
    component: str
    package: str
    path: str  # inside the package


SMI = "usr/lib/nvidia/current/nvidia-smi"
NVIDIA_SMI_535 = Program("bookworm", "non-free", "nvidia-smi", SMI)
NVIDIA_SMI_550 = Program("trixie", "non-free", "nvidia-smi", SMI)
SMIS = {"535": NVIDIA_SMI_535, "550": NVIDIA_SMI_550}
NVTOP = Program("bookworm", "contrib", "nvtop", "usr/bin/nvtop")


class Unavailable(Exception):
    """A program cannot be downloaded; the text says why."""


def available(program: Program) -> Path:
    """The path of the program. If it cannot be downloaded, skips the test with a warning."""
    try:
        return find(program)
    except Unavailable as reason:
        text = f"NOT TESTED with {program.package} of {program.suite}: {reason}"
        warnings.warn(text, stacklevel=2)
        pytest.skip(str(reason))


def find(program: Program) -> Path:
    """The path of the program, which is downloaded if necessary. Raises Unavailable."""
    place = _cache() / f"{program.suite}-{program.package}-{platform.machine()}"
    with _locked(place):
        found = place / "root" / program.path
        if not found.exists():
            if not all(shutil.which(name) for name in ("apt-get", "dpkg-deb")):
                raise Unavailable("there is no apt-get here to fetch Debian's programs with")
            _fetch(program, place)
        if not found.exists():
            raise Unavailable(f"{program.package} of {program.suite} has no {program.path}")
    return found


def _fetch(program: Program, place: Path) -> None:
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (place / name).mkdir(parents=True, exist_ok=True)
    signed = f"[signed-by={_KEYS}] " if _KEYS.exists() else ""
    source = f"deb {signed}{_mirror()} {program.suite} {program.component}\n"
    (place / "sources.list").write_text(source, encoding="utf-8")
    options = {
        "Dir::State": place / "state",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": place / "cache",
        "Dir::Etc::sourcelist": place / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Acquire::Languages": "none",
        "Acquire::Retries": "1",
    }
    apt = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in options.items())]
    _run([*apt, "update"], place)
    _run([*apt, "download", program.package], place)
    for archive in place.glob("*.deb"):
        _run(["dpkg-deb", "-x", str(archive), str(place / "root")], place)


def _mirror() -> str:
    """The mirror of Debian in the apt settings of this machine."""
    wanted = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(wanted, capture_output=True, text=True, check=False).stdout.split()
    for address in listed:
        if address.rstrip("/").endswith("/debian"):
            return address
    raise Unavailable("this machine's apt knows no mirror of Debian")


def _run(command: list[str], place: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} {command[-1]}: no answer in {_SECONDS} s") from None
    if done.returncode:
        last = (done.stderr.strip() or "it failed").splitlines()[-1]
        raise Unavailable(f"{command[0]} {command[-1]}: {last}")


def _cache() -> Path:
    home = os.environ.get("GPUPOOL_CACHE")
    if home:
        return Path(home) / "debian"
    general = os.environ.get("XDG_CACHE_HOME")
    return (Path(general) if general else Path.home() / ".cache") / "gpupool" / "debian"


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Lets one process download at a time: test runs may need the same program."""
    place.mkdir(parents=True, exist_ok=True)
    fd = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
