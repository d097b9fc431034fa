"""Single programs out of Debian's packages, fetched with apt-get and kept in the cache.

Nothing is installed: the package is unpacked, and one file of it taken.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.build import BuildError, cache_root

# By name: its package, and where it lies in that.
_PROGRAMS = {
    "busybox": ("busybox-static", "bin/busybox"),  # needs no library: it runs in any container
    "runc": ("runc", "usr/sbin/runc"),  # with seccomp, which a build from Go modules lacks
}


def is_possible() -> bool:
    return _has_apt() or all(_place(name).exists() for name in _PROGRAMS)


def ensure(name: str) -> Path:
    """The program's path. Raises BuildError."""
    target = _place(name)
    if target.exists():
        return target
    package, path = _PROGRAMS[name]
    if not _has_apt():
        raise BuildError(f"{name}: wanted Debian's package {package}, found no apt-get")
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        fetched = subprocess.run(
            ["apt-get", "download", package], cwd=here, capture_output=True, text=True, check=False
        )
        packages = list(here.glob("*.deb"))
        if not packages:
            raise BuildError(f"{name}: apt-get download {package} failed: {fetched.stderr}")
        subprocess.run(["dpkg-deb", "-x", str(packages[0]), str(here / "files")], check=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(".new")
        shutil.copy2(here / "files" / path, unfinished)
        unfinished.replace(target)  # last: a program in the cache is always whole
    return target


def _place(name: str) -> Path:
    return cache_root() / "debian" / name


def _has_apt() -> bool:
    return all(shutil.which(each) is not None for each in ("apt-get", "dpkg-deb"))
