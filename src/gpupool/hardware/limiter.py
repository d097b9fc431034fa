"""Installs the limiter's files on a node's disk, from where they are mounted into containers.

    files = install(directory, Settings(driver="/usr/$LIB", context_mib=312))
    files.mounts               # (host path, container path): for every Allocate of isolated shares
    files.variables(env)       # LD_PRELOAD, LD_LIBRARY_PATH: for processes outside of containers

An installation is a directory named by the hash of its content. It is never changed or replaced: a
new version gets a new directory. Containers run for weeks with the directory mounted. If its files
were replaced, processes of one container could run different versions of the limiter on the same
shared memory region, whose layout may differ.

In it are the limiter, which every program of the container preloads, and stand-ins with the names
of the driver's libraries. A program that opens libcuda.so.1 with dlopen gets the stand-in, which
depends first on the limiter and then on the driver's real file.

    LimiterError               the text says thing, wanted, found
     +- NotBuilt               this machine has no libraries for its architecture
"""

import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpupool.contract.names import (
    LIMITER_DIRECTORY,
    LIMITS_DIRECTORY,
    LIMITS_FILE,
    PRELOAD_LIST,
    REGION_DIRECTORY,
    REGION_FILE,
)
from gpupool.hardware import selinux

LIBRARY = "libgpupool-limiter.so"
STAND_INS = ("libcuda.so.1", "libnvidia-ml.so.1")
CONFIG = "limiter.conf"
_PRELOAD = "ld.so.preload"
_PLACEHOLDER = b"/gpupool-driver" + b"x" * 200  # as native/build.py links it


class LimiterError(Exception):
    """Base class; the tree is in the module's docstring."""


class NotBuilt(LimiterError):
    pass


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of the limiter's configuration file. Paths are as the container sees them."""

    # Directory of the driver's own libraries; empty: no stand-ins are made. The image's loader
    # replaces $LIB by the name of its library directory, lib64 or lib/x86_64-linux-gnu.
    driver: str = ""
    context_mib: int = 0  # memory of a process's first context on a card (context_memory.py)
    limits: str = f"{LIMITS_DIRECTORY}/{LIMITS_FILE}"
    # The directory at which the limit file's volume is mounted. The limiter accepts no limit file
    # but one on this mount. Empty: any file, for programs outside of containers.
    limits_mount: str = LIMITS_DIRECTORY
    root: str = "/"  # where the file system that this directory is in is mounted
    region: str = f"{REGION_DIRECTORY}/{REGION_FILE}"
    directory: str = LIMITER_DIRECTORY  # where it is mounted; empty: it is used where it is


class LimiterFiles(NamedTuple):
    directory: Path

    @property
    def library(self) -> Path:
        return self.directory / LIBRARY

    @property
    def mounts(self) -> tuple[tuple[str, str], ...]:
        """Read-only mounts: the installation, and the loader's list of libraries to preload."""
        return (
            (str(self.directory), LIMITER_DIRECTORY),
            (str(self.directory / _PRELOAD), PRELOAD_LIST),
        )

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """What to set for a process with these variables that runs outside of a container."""
        return {
            "LD_PRELOAD": _joined(str(self.library), variables.get("LD_PRELOAD")),
            "LD_LIBRARY_PATH": _joined(str(self.directory), variables.get("LD_LIBRARY_PATH")),
        }


def check(settings: Settings) -> None:
    """Raises LimiterError if these settings, or what was built, cannot be installed anywhere."""
    _contents(settings)


def install(root: Path, settings: Settings) -> LimiterFiles:
    """Makes the installation below `root` unless it is there. Raises LimiterError, OSError."""
    contents = _contents(settings)
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        # The length keeps names and contents apart: two sets of files never give the same bytes.
        digest.update(f"{name} {len(content)}\n".encode() + content)
    place = root / digest.hexdigest()[:16]
    if not settings.directory:
        # The preload list holds the installation's own path, which ends in the hash. So its
        # final content cannot be part of the hash.
        contents[_PRELOAD] = f"{place / LIBRARY}\n".encode()
    if not place.exists():
        root.mkdir(parents=True, exist_ok=True)
        _make(root, place, contents)
    return LimiterFiles(place)


def _contents(settings: Settings) -> dict[str, bytes]:
    built = _built()
    for path in _paths(settings):
        if "\n" in path:
            raise LimiterError(f"{path!r}: wanted an absolute path without line breaks")
    lines = [
        f"limits={settings.limits}",
        f"limits_mount={settings.limits_mount}",
        f"root={settings.root}",
        f"region={settings.region}",
    ]
    contents = {
        LIBRARY: (built / LIBRARY).read_bytes(),
        _PRELOAD: f"{settings.directory}/{LIBRARY}\n".encode(),
    }
    if settings.driver:
        for name, key in zip(STAND_INS, ("cuda", "nvml"), strict=True):
            real = f"{settings.driver}/{name}"
            contents[name] = _leading_to(real, (built / name).read_bytes())
            lines.append(f"{key}={real}")
    lines.append(f"context_mib={settings.context_mib}")
    contents[CONFIG] = "".join(f"{line}\n" for line in lines).encode()
    return contents


def _paths(settings: Settings) -> tuple[str, ...]:
    limit_file = (settings.limits, settings.limits_mount, settings.root)
    return (*limit_file, settings.region, settings.driver)


def _leading_to(path: str, stand_in: bytes) -> bytes:
    """The stand-in with `path` as the driver library that it depends on.

    It was linked against a placeholder name that is long enough for any path. The placeholder in
    the binary is overwritten here, so that no linker is needed on the node.
    """
    wanted = os.fsencode(path)
    if len(wanted) > len(_PLACEHOLDER) or not path.startswith("/"):
        raise LimiterError(
            f"driver: {path}: wanted an absolute path of at most {len(_PLACEHOLDER)} bytes"
        )
    if stand_in.count(_PLACEHOLDER) != 1:
        raise LimiterError("the stand-ins are damaged; `make native` builds them anew")
    # Filled up with NULs: the loader reads the name up to the first one, and no offset in the file
    # moves.
    return stand_in.replace(_PLACEHOLDER, wanted.ljust(len(_PLACEHOLDER), b"\0"))


def _make(root: Path, place: Path, contents: Mapping[str, bytes]) -> None:
    """Writes a temporary directory and renames it: nobody ever sees an incomplete installation."""
    scratch = Path(tempfile.mkdtemp(dir=root, prefix=".new-"))
    try:
        for name, content in contents.items():
            (scratch / name).write_bytes(content)
            # The name `ld.so.preload` contains ".so", too, but it is a text file.
            (scratch / name).chmod(0o555 if ".so" in name and name != _PRELOAD else 0o444)
        # mkdtemp makes a directory for its owner only, but containers run as other users.
        scratch.chmod(0o755)
        if selinux.is_on():
            selinux.let_containers_read(scratch)
        scratch.rename(place)
    except OSError:
        if not place.exists():  # unless another process has made the same directory meanwhile
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _built() -> Path:
    machine = platform.machine()
    place = Path(__file__).resolve().parent.parent / "_native" / machine / "limiter"
    if not (place / LIBRARY).exists():
        raise NotBuilt(
            f"there is no limiter for {platform.system()} on {machine}; "
            "in a checkout, `make native` builds it"
        )
    return place


def _joined(first: str, rest: str | None) -> str:
    return f"{first}:{rest}" if rest else first
