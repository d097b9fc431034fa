"""Compiles the native parts with ziglang: no system compiler, any glibc from 2.17 on.

    python native/build.py             for this machine, into src/gpupool/_native/<arch>/
    python native/build.py --all       for every architecture

Nothing is done while the sources are the ones that were built last. Called by hatch_build.py when
a wheel or an editable install is made, by `make native`, and by the tests. Only the standard
library is imported: it runs before anything is installed.
"""

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "src" / "gpupool" / "_native"
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = "2.17"
_STAMP = "built-from"

_FLAGS = ("-std=gnu11", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")
# Calls within a library stay within it, whatever else is loaded.
_LIBRARY = ("-shared", "-fPIC", "-ldl", "-lpthread", "-lrt", "-Wl,-Bsymbolic")


class BuildError(RuntimeError):
    """It cannot be built; the text says why."""


@dataclass(frozen=True)
class Product:
    """A file, the directories with its sources, and how it is linked; {place} is where it goes."""

    path: str
    sources: tuple[str, ...]
    flags: tuple[str, ...]


# What stand-ins need instead of the driver's own file: its path is written over this one when they
# are installed (gpupool/hardware/limiter.py).
DRIVER_PLACEHOLDER = "/gpupool-driver" + "x" * 200
_LIMITER = "limiter/libgpupool-limiter.so"
_DRIVER_PATH = "limiter/driver-path.so"  # only to be linked with
_STAND_IN = "isolation/stand_in"


def _stand_in(name: str) -> Product:
    needs = (f"{{place}}/{_LIMITER}", f"{{place}}/{_DRIVER_PATH}")
    flags = (f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed")
    return Product(f"limiter/{name}", (_STAND_IN,), ("-shared", "-fPIC", *flags, *needs))


PRODUCTS = (
    Product(
        "lib/libcuda.so.1",
        ("interface", "process", "simdriver", "simdriver/cuda"),
        (*_LIBRARY, "-Wl,-soname,libcuda.so.1"),
    ),
    Product(
        "lib/libnvidia-ml.so.1",
        ("interface", "process", "simdriver", "simdriver/nvml"),
        (*_LIBRARY, "-Wl,-soname,libnvidia-ml.so.1"),
    ),
    Product(
        "bin/nvidia-smi", ("interface", "simdriver/smi"), ("-ldl", "-Wl,-rpath,$ORIGIN/../lib")
    ),
    Product(
        _LIMITER,
        ("interface", "process", "isolation/core", "isolation/hooks"),
        (*_LIBRARY, "-flto", "-Wl,-soname,libgpupool-limiter.so"),
    ),
    Product(_DRIVER_PATH, (_STAND_IN,), (*_LIBRARY, f"-Wl,-soname,{DRIVER_PLACEHOLDER}")),
    _stand_in("libcuda.so.1"),
    _stand_in("libnvidia-ml.so.1"),
)


def is_possible() -> bool:
    """These are libraries for Linux."""
    return sys.platform == "linux" and platform.machine() in ARCHITECTURES


def build(architecture: str) -> Path:
    """The directory with lib/ and bin/, up to date. Raises BuildError."""
    place = TARGET / architecture
    place.mkdir(parents=True, exist_ok=True)
    with _alone(place):
        wanted = _fingerprint(architecture)
        stamp = place / _STAMP
        if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
            return place
        for product in PRODUCTS:
            _compile(product, architecture, place)
        stamp.write_text(wanted, encoding="ascii")
    return place


def _compile(product: Product, architecture: str, place: Path) -> None:
    target = place / product.path
    target.parent.mkdir(exist_ok=True)
    sources = [str(file) for part in product.sources for file in sorted((HERE / part).glob("*.c"))]
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        made = Path(scratch) / target.name
        done = subprocess.run(
            [
                *(sys.executable, "-m", "ziglang", "cc"),
                *("-target", f"{architecture}-linux-gnu.{GLIBC}"),
                *(*_FLAGS, *sources, "-o", str(made)),
                *(flag.format(place=place) for flag in product.flags),
            ],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **cache_environment()},
        )
        if done.returncode:
            raise BuildError(f"{product.path} for {architecture}:\n{done.stderr}")
        made.chmod(0o755)
        # A program that has the old file loaded keeps it.
        os.replace(made, target)


def cache_environment() -> dict[str, str]:
    """One cache for all checkouts: the first build also makes parts of libc."""
    home = os.environ.get("GPUPOOL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpupool"
    )
    cache = os.path.join(home, "zig")
    return {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}


def _fingerprint(architecture: str) -> str:
    if importlib.util.find_spec("ziglang") is None:
        raise BuildError("ziglang is missing: pip install ziglang, or run it by `make native`")
    digest = hashlib.sha256(f"{architecture} {importlib.metadata.version('ziglang')}".encode())
    parts = {part for product in PRODUCTS for part in product.sources}
    files = {file for part in parts for file in (HERE / part).glob("*.*")}
    for file in (Path(__file__), *sorted(files)):
        digest.update(str(file.relative_to(HERE)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Two test runs may begin at once."""
    fd = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="every architecture, not only this one")
    chosen = ARCHITECTURES if parser.parse_args().all else (platform.machine(),)
    if not is_possible():
        sys.stderr.write("The native parts are for Linux on x86_64 and aarch64.\n")
        return 0
    try:
        for architecture in chosen:
            build(architecture)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
