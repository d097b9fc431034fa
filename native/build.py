"""Compiles the native parts with ziglang: no system compiler, and any glibc from 2.17 on.

    python native/build.py             for this machine, into src/gpupool/_native/<arch>/
    python native/build.py --all       for every architecture

Where ziglang is not installed, a compiler of the system does, but only for this machine: ziglang
takes 400 MB, and a first `make up` should not wait for it.

If the sources have not changed since the last build, nothing is done. Called by hatch_build.py when
a wheel or an editable install is made, by `make native`, and by the tests. Imports the standard
library only: it runs before anything is installed.

    build(architecture)                what is shipped, or the same for this machine alone
    build_with(toolchain, place)       the same with another compiler, for example with the
                                       sanitizers of gcc or clang (tests/native/sanitizers.py)
"""

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
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
COMMON_FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")
_STAMP = "built-from"

# -Bsymbolic: calls within a library stay within it, whatever other libraries are loaded.
_LIBRARY = ("-shared", "-fPIC", "-ldl", "-lpthread", "-lrt", "-Wl,-Bsymbolic")


class BuildError(RuntimeError):
    """The native parts cannot be built; the text says why."""


@dataclass(frozen=True)
class Toolchain:
    """A compiler that is called as `command`, and the flags that it gets for every file."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    version: str  # another version builds everything again
    has_lto: bool = True


@dataclass(frozen=True)
class Product:
    """A file, the directories of its sources, and linker flags. {place} becomes the target."""

    path: str
    sources: tuple[str, ...]
    flags: tuple[str, ...]


# The stand-ins are linked with this path instead of that of the driver's library. When they are
# installed, the driver's path is written over it (gpupool/hardware/limiter.py).
DRIVER_PLACEHOLDER = "/gpupool-driver" + "x" * 200
_LIMITER = "limiter/libgpupool-limiter.so"
_DRIVER_PATH = "limiter/driver-path.so"  # only to link the stand-ins with
_STAND_IN = "isolation/stand_in"
_LTO = "-flto"


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
        (*_LIBRARY, _LTO, "-Wl,-soname,libgpupool-limiter.so"),
    ),
    Product(_DRIVER_PATH, (_STAND_IN,), (*_LIBRARY, f"-Wl,-soname,{DRIVER_PLACEHOLDER}")),
    _stand_in("libcuda.so.1"),
    _stand_in("libnvidia-ml.so.1"),
    # Its numbers must be those of NumPy, which rounds after every operation.
    Product(
        "engine/libgpupool-engine.so",
        ("engine",),
        ("-shared", "-fPIC", "-lm", "-O3", "-ffp-contract=off"),
    ),
)


def is_possible() -> bool:
    """Whether the native parts exist for this system."""
    return sys.platform == "linux" and platform.machine() in ARCHITECTURES


def build(architecture: str, *, shipped: bool = True) -> Path:
    """Returns the directory with lib/, bin/ and limiter/, up to date. Raises BuildError.

    `shipped`: for other machines too; otherwise any compiler does.
    """
    toolchain = None if shipped or _has_zig() else system(architecture)
    return build_with(toolchain or zig(architecture), TARGET / architecture)


def build_with(toolchain: Toolchain, place: Path) -> Path:
    """Brings the directory up to date and returns it. Raises BuildError."""
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place):
        wanted = _fingerprint(toolchain)
        stamp = place / _STAMP
        if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
            return place
        for product in PRODUCTS:
            _compile(product, toolchain, place)
        stamp.write_text(wanted, encoding="ascii")
    return place


def zig(architecture: str) -> Toolchain:
    """The compiler of what is shipped. Raises BuildError."""
    if not _has_zig():
        raise BuildError("ziglang is missing: pip install ziglang, or run it by `make native`")
    return Toolchain(
        (sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu.{GLIBC}"),
        (*COMMON_FLAGS, "-O2", "-s"),
        f"{architecture} {importlib.metadata.version('ziglang')}",
    )


def _has_zig() -> bool:
    return importlib.util.find_spec("ziglang") is not None


def system(architecture: str) -> Toolchain | None:
    """A compiler of this machine that can build for it; None: there is none."""
    if architecture != platform.machine():
        return None
    for command in ("cc", "gcc", "clang"):
        with tempfile.TemporaryDirectory() as scratch:
            # More than its version: a compiler without the headers of the C library is no use.
            tried = (
                subprocess.run(
                    [command, *COMMON_FLAGS, "-x", "c", "-", "-o", f"{scratch}/tried", *_LIBRARY],
                    input=_TRIAL,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if shutil.which(command)
                else None
            )
        if tried is not None and not tried.returncode:
            version = subprocess.run(
                [command, "--version"], capture_output=True, text=True, check=False
            ).stdout.partition("\n")[0]
            return Toolchain(
                (command,),
                (*COMMON_FLAGS, "-O2", "-s"),
                f"{architecture} {version}",
                # gcc compares types over all files then, and each hook has its own.
                has_lto=False,
            )
    return None


# What the sources need of a compiler and its C library: C11 atomics, threads, thread locals.
_TRIAL = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
static _Thread_local int here;
static _Atomic unsigned long count;
void *tried(void) { here++; atomic_fetch_add(&count, 1); return dlsym(0, "tried"); }
"""


def _compile(product: Product, toolchain: Toolchain, place: Path) -> None:
    target = place / product.path
    target.parent.mkdir(exist_ok=True)
    sources = [str(file) for part in product.sources for file in sorted((HERE / part).glob("*.c"))]
    flags = [flag for flag in product.flags if toolchain.has_lto or flag != _LTO]
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        made = Path(scratch) / target.name
        done = subprocess.run(
            [
                *(*toolchain.command, *toolchain.flags, *sources, "-o", str(made)),
                *(flag.format(place=place) for flag in flags),
            ],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **cache_environment()},
        )
        if done.returncode:
            raise BuildError(f"{product.path} ({toolchain.version}):\n{done.stderr}")
        made.chmod(0o755)
        # Replaced, not overwritten: a program that has loaded the old file keeps it.
        os.replace(made, target)


def cache_environment() -> dict[str, str]:
    """Variables that give zig one cache for all checkouts: it compiles parts of libc once."""
    home = os.environ.get("GPUPOOL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpupool"
    )
    cache = os.path.join(home, "zig")
    return {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}


def _fingerprint(toolchain: Toolchain) -> str:
    digest = hashlib.sha256(toolchain.version.encode())
    parts = {part for product in PRODUCTS for part in product.sources}
    files = {file for part in parts for file in (HERE / part).glob("*.*")}
    for file in (Path(__file__), *sorted(files)):
        digest.update(str(file.relative_to(HERE)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Lets one process build at a time: test runs may begin side by side."""
    fd = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="every architecture, not only this one")
    parser.add_argument(
        "--needs-zig", action="store_true", help="exit with 0 if only ziglang can compile here"
    )
    given = parser.parse_args()
    everything = given.all
    if given.needs_zig:
        return int(not is_possible() or _has_zig() or system(platform.machine()) is not None)
    chosen = ARCHITECTURES if everything else (platform.machine(),)
    if not is_possible():
        sys.stderr.write("The native parts are for Linux on x86_64 and aarch64.\n")
        return 0
    try:
        for architecture in chosen:
            build(architecture, shipped=everything)
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
