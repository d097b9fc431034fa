"""Layers out of this machine's own Python: an image that runs Python and everything of glibc.

    python_layer()      the C library, Python and its standard library
    package_layer()     what of this environment gpupool needs, and gpupool itself

Containers find Python in /usr/bin; with PYTHONHOME it finds itself.
"""

from __future__ import annotations

import importlib.metadata
import io
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from testbed.images import add_file, add_link

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
# As NVIDIA's own images have it: where a driver that is mounted by hand is found.
ENVIRONMENT = {
    "PATH": "/usr/local/nvidia/bin:/usr/bin:/bin",
    "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
    "PYTHONHOME": "/usr",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_LEFT_OUT = frozenset(
    ("site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "__pycache__")
)
_NEEDS_A_SCREEN = "_tkinter"
_LIBRARIES = f"lib/{platform.machine()}-linux-gnu"
_OLD_PARTS = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")
_SOURCE = Path(__file__).resolve().parent.parent / "src"
_PRODUCTION = ("gpupool", "kubeclient")  # localkube is not in the image
_PACKAGES = f"usr/lib/{VERSION}/site-packages"


@cache
def python_layer() -> bytes:
    program = Path(sys.executable).resolve()
    library = Path(sysconfig.get_paths()["stdlib"])
    files = {f"usr/lib/{VERSION}/{path.relative_to(library)}": path for path in _below(library)}
    files[f"usr/bin/{VERSION}"] = program
    return _layer(files, {"usr/bin/python3": VERSION, "usr/bin/python": VERSION})


@cache
def package_layer() -> bytes:
    """Without the C library, which python_layer has."""
    files = {
        f"{_PACKAGES}/{inside}": path
        for name in _needed("gpupool")
        for inside, path in _files_of(name)
    }
    for package in _PRODUCTION:
        below = _below(_SOURCE / package)
        files |= {f"{_PACKAGES}/{path.relative_to(_SOURCE)}": path for path in below}
    start = f"#!/usr/bin/{VERSION}\nfrom gpupool.__main__ import main\nmain()\n"
    return _layer(files, {}, {"usr/bin/gpupool": start.encode()})


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        folders = path.relative_to(folder).parts[:-1]
        is_for_compilers = any(name.startswith("config-") for name in folders)
        is_left_out = is_for_compilers or path.name.startswith(_NEEDS_A_SCREEN)
        if path.is_file() and not (is_left_out or _LEFT_OUT & set(folders)):
            yield path


def _needed(name: str) -> set[str]:
    """The distributions that this one needs, without itself; markers for other systems apart."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for line in _requirements(waiting.pop()):
            wanted, _, marker = line.partition(";")
            if "extra ==" in marker or ("win32" in marker and "!=" not in marker):
                continue
            match = re.match(r"[A-Za-z0-9._-]+", wanted)
            assert match is not None, line
            each = re.sub(r"[-_.]+", "-", match[0]).lower()
            if each in _PRODUCTION:
                waiting.append(each)
            elif each not in found and _is_installed(each):
                found.add(each)
                waiting.append(each)
    return found


def _requirements(name: str) -> list[str]:
    """In a checkout, kubeclient is no distribution of its own: its project file says."""
    project = _SOURCE / name / "pyproject.toml"
    if not project.exists():
        return importlib.metadata.requires(name) or []
    needed: list[str] = tomllib.loads(project.read_text("utf-8"))["project"]["dependencies"]
    return needed


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:  # its marker is of another Python
        return False
    return True


def _files_of(name: str) -> Iterator[tuple[str, Path]]:
    for each in importlib.metadata.files(name) or ():
        path = Path(str(each.locate()))
        if ".." not in each.parts and "__pycache__" not in each.parts and path.is_file():
            yield str(each), path


def _layer(
    files: dict[str, Path], links: dict[str, str], made: dict[str, bytes] | None = None
) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for inside, path in sorted({**_libraries(files.values()), **files}.items()):
            add_file(layer, inside, path.read_bytes(), path.stat().st_mode & 0o777)
        for inside, target in links.items():
            add_link(layer, inside, target)
        for inside, data in (made or {}).items():
            add_file(layer, inside, data, 0o755)
    return buffer.getvalue()


def _libraries(files: Iterable[Path]) -> dict[str, Path]:
    """What these programs and libraries load, by the path where the loader looks for it."""
    objects = [str(path) for path in files if path.suffix == ".so" or _is_program(path)]
    # Complaints about single files (of another system, say) are theirs; it tells of the others.
    told = subprocess.run(["ldd", *objects], capture_output=True, text=True, check=False).stdout
    found = {}
    for line in told.splitlines():
        match = re.search(r"(\S+)(?: => (\S+))? \(0x", line)
        if match is None or not (match[2] or match[1]).startswith("/"):
            continue
        path = Path(match[2] or match[1])
        if "site-packages" in path.parts:  # found beside who needs it
            continue
        is_loader = match[2] is None
        found[match[1].lstrip("/") if is_loader else f"{_LIBRARIES}/{path.name}"] = path
        if path.name == "libc.so.6":
            # Programs that are mounted later need the rest of it.
            rest = [path.with_name(name) for name in _OLD_PARTS]
            found |= {f"{_LIBRARIES}/{each.name}": each for each in rest if each.exists()}
    return found


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
