"""What a card needs in a container, made from the driver's own files where no CDI file says it.

Nodes that have the driver and nothing else of NVIDIA have no CDI files. The kernel module tells
which card has which device node; the libraries that belong to it have its version in their names.
Libraries are mounted under all names that lead to them, and in both places where loaders look
without a cache, so that no hook has to run in the container. Nothing is written to the node.
"""

import contextlib
import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gpupool.hardware.cdi import BindMount, Device, DeviceNode, Edits, Spec

KIND = "gpupool.io/gpu"  # never in a file: it must not be taken for one of NVIDIA's
MODULE = Path("/proc/driver/nvidia")  # the kernel's, so every container sees it
_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_PROGRAMS = ("nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
_OPTIONS = ("ro", "nosuid", "nodev", "rbind", "rprivate")
# Where distributions have libraries, below the root of the driver.
LIBRARIES = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib",
)
# And where the loaders of images look for them: Red Hat and its kin, Debian and its kin.
_PLACES = {"x86_64": ("/usr/lib64", "/usr/lib/x86_64-linux-gnu")} | {
    "aarch64": ("/usr/lib64", "/usr/lib/aarch64-linux-gnu")
}
_VERSION = re.compile(r"Kernel Module\s(?:for \S{1,64})?\s{0,64}(\d{1,9}\.\d{1,9}(?:\.\d{1,9})?)")
_LARGEST = 1 << 16  # of a file of the kernel module
_MOST_CARDS = 64
_MOST_NAMES = 20_000  # of files in a directory


class DriverFiles(NamedTuple):
    """What was found below the root of the driver. Paths are relative to it."""

    version: str
    minors: Mapping[str, int]  # uuid of a card -> number of its device node
    # Directory -> names in it -> where a link leads; empty: it is a file.
    libraries: Mapping[str, Mapping[str, str]]
    programs: Sequence[str] = ()  # usr/bin/nvidia-smi
    control: Sequence[str] = ()  # names of device nodes beside those of the cards


def driver_spec(files: DriverFiles, root: str, machine: str = "x86_64") -> Spec:
    """Pure. `root`: where the root of the driver is on the node."""
    mounts = [*_library_mounts(files, root, machine), *_program_mounts(files, root)]
    control = tuple(DeviceNode(f"/dev/{name}") for name in files.control)
    devices = tuple(
        Device(uuid, Edits(device_nodes=(DeviceNode(f"/dev/nvidia{minor}"),)))
        for uuid, minor in files.minors.items()
    )
    return Spec(KIND, devices, Edits(device_nodes=control, mounts=tuple(mounts)))


def _library_mounts(files: DriverFiles, root: str, machine: str) -> list[BindMount]:
    made: dict[str, BindMount] = {}
    for directory, names in files.libraries.items():
        for name in sorted(names):
            if not _is_of_driver(name, files.version):
                continue
            source = str(PurePosixPath(root) / directory / name)
            for place in _PLACES.get(machine, ("/usr/lib64",)):
                for alias in (name, *_aliases(name, names)):
                    path = f"{place}/{alias}"
                    made.setdefault(path, BindMount(source, path, _OPTIONS))
    return list(made.values())


def _is_of_driver(name: str, version: str) -> bool:
    return name.startswith(("libcuda", "libnvidia-")) and name.endswith(f".so.{version}")


def _aliases(file: str, names: Mapping[str, str]) -> list[str]:
    """The links that lead to the file, also by way of others: libcuda.so -> libcuda.so.1 -> it."""
    found = [file]
    for known in found:  # grows while it is walked
        found += [n for n, leads in names.items() if leads == known and n not in found]
    return found[1:]


def _program_mounts(files: DriverFiles, root: str) -> list[BindMount]:
    return [
        BindMount(str(PurePosixPath(root) / path), f"/usr/bin/{PurePosixPath(path).name}", _OPTIONS)
        for path in files.programs
    ]


# -- reading -------------------------------------------------------------------------------------


def read_driver_files(root: Path, devices: Path, module: Path = MODULE) -> DriverFiles:
    """`root`, `devices`: where we see the root of the driver, and /dev of the node. Raises OSError
    if there is no driver, ValueError if it tells no version."""
    text = _text(module / "version")
    found = _VERSION.search(text)
    if found is None:
        raise ValueError(f"{module / 'version'}: wanted the version of NVIDIA's module, found none")
    return DriverFiles(
        found[1],
        _minors(module / "gpus"),
        {place: names for place in LIBRARIES if (names := _names(root / place))},
        [f"usr/bin/{name}" for name in _PROGRAMS if (root / "usr/bin" / name).exists()],
        [name for name in _CONTROL if (devices / name).exists()],
    )


def _minors(directory: Path) -> dict[str, int]:
    made = {}
    for name in sorted(os.listdir(directory))[:_MOST_CARDS]:
        fields = {
            key.strip(): value.strip()
            for key, _, value in (
                line.partition(":") for line in _text(directory / name / "information").splitlines()
            )
        }
        uuid, minor = fields.get("GPU UUID", ""), fields.get("Device Minor", "")
        # A card that is not initialised shows question marks.
        if re.fullmatch(r"GPU-[0-9a-f-]+", uuid) and minor.isdigit():
            made[uuid] = int(minor)
    return made


def _names(directory: Path) -> dict[str, str]:
    try:
        with os.scandir(directory) as entries:
            return {
                entry.name: os.readlink(entry.path) if entry.is_symlink() else ""
                for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)
                if entry.name.startswith(("libcuda", "libnvidia-"))
            }
    except OSError:  # most roots have one or two of the directories
        return {}


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST).decode(errors="replace")


def nvml_file(root: Path) -> Path | None:
    """NVML's library below the root of the driver; None: it is not there."""
    places = (root / place / "libnvidia-ml.so.1" for place in LIBRARIES)
    return next((place for place in places if place.exists()), None)


class DriverRoot:
    """The driver of the node, below a directory that the agent sees."""

    def __init__(
        self, on_node: str, seen: Path, devices: Path = Path("/dev"), module: Path = MODULE
    ) -> None:
        self.seen = seen
        self._on_node = on_node
        self._devices = devices
        self._module = module
        self._known: tuple[str, Spec] | None = None  # the module's own words, and what came of it

    def spec(self) -> Spec | None:
        """For the cards of the node; None: there is no driver. Read again when the driver was
        replaced."""
        try:
            words = _text(self._module / "version")
            if self._known is None or self._known[0] != words:
                files = read_driver_files(self.seen, self._devices, self._module)
                self._known = words, driver_spec(files, self._on_node, os.uname().machine)
        except (OSError, ValueError):
            return None
        return self._known[1]

    def load_nvml(self) -> None:
        """Loads NVML by its path: whoever asks for it by name gets this one afterwards. Does
        nothing where it is not there (yet)."""
        path = nvml_file(self.seen)
        if path is not None:
            with contextlib.suppress(OSError):  # then nobody else finds it either, and says so
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
