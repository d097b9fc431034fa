"""CDI: files of a node that say what a container needs to use a device.

nvidia-ctk, the GPU Operator and device plugins write them into /etc/cdi and /var/run/cdi. A
specification has a kind (`nvidia.com/gpu`) and devices; a device has a name (a card's uuid, among
others) and edits: device nodes, mounts, variables and hooks. Runtimes that know CDI apply them by
name. We read the files ourselves, because containerd 1.7 and CRI-O before 1.34 take no names from
NRI plugins.

Facts: github.com/cncf-tags/container-device-interface, specification 1.1.0.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

# A device of the later directory wins over one of the same name in the earlier one.
DIRECTORIES = (Path("/etc/cdi"), Path("/var/run/cdi"))
_DEVICES = Path("/dev")
_MAX_FILES = 256  # of one directory
_MAX_BYTES = 1 << 20  # of one file; that of a node with eight cards has 60 kB
_VENDOR = "nvidia.com"
_CLASS = "gpu"
_Thing = TypeVar("_Thing")
_KIND = f"{_VENDOR}/{_CLASS}"  # nvidia-ctk's; device plugins prefix the vendor


class BadSpec(ValueError):
    """A file that is no specification; the text says which and why."""


class DeviceNode(msgspec.Struct, frozen=True, rename="camel"):
    path: str  # in the container
    host_path: str = ""  # the same, if it is empty
    type: str = ""  # c or b; empty: as it is on the node
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    uid: int | None = None
    gid: int | None = None


class BindMount(msgspec.Struct, frozen=True, rename="camel"):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class Hook(msgspec.Struct, frozen=True, rename="camel"):
    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class Edits(msgspec.Struct, frozen=True, rename="camel"):
    """What changes in a container. Groups, RDT and network devices cannot be changed by NRI."""

    env: tuple[str, ...] = ()  # NAME=value
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[BindMount, ...] = ()
    hooks: tuple[Hook, ...] = ()

    def __add__(self, other: "Edits") -> "Edits":
        """Both, each thing once: cards of one node share libraries and control devices."""
        return Edits(
            _once(self.env + other.env),
            _once(self.device_nodes + other.device_nodes),
            _once(self.mounts + other.mounts),
            _once(self.hooks + other.hooks),
        )


class Device(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    container_edits: Edits = Edits()


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    devices: tuple[Device, ...] = ()
    container_edits: Edits = Edits()  # for every device


def _once(things: tuple[_Thing, ...]) -> tuple[_Thing, ...]:
    return tuple(dict.fromkeys(things))


def spec_of(text: str) -> Spec:
    """Raises BadSpec."""
    from gpupool.contract.yaml_document import read_document  # many nodes have no such file

    document = read_document(text)
    if isinstance(document, tuple):
        raise BadSpec(document[0].line("the file"))
    try:
        return msgspec.convert(document.data, Spec)
    except msgspec.ValidationError as error:
        raise BadSpec(str(error)) from error


def read_specs(directories: Sequence[Path] = DIRECTORIES) -> tuple[list[Spec], list[str]]:
    """The specifications of GPUs, those that win last, and what is wrong with the other files."""
    specs, wrong = [], []
    for path in _files(directories):
        try:
            spec = spec_of(_text(path))
        except (BadSpec, OSError, UnicodeDecodeError) as error:
            wrong.append(f"{path}: {error}")
            continue
        vendor, _, class_ = spec.kind.partition("/")
        if class_ == _CLASS and (vendor == _VENDOR or vendor.endswith(f".{_VENDOR}")):
            specs.append(spec)
    # nvidia-ctk's are complete; those of device plugins may leave the libraries to the runtime.
    return sorted(specs, key=lambda spec: spec.kind == _KIND), wrong


class Specs:
    """The specifications of a node. Files are read again only when one of them has changed: the
    container runtime waits while we look."""

    def __init__(
        self,
        directories: Sequence[Path] = DIRECTORIES,
        devices: Path = _DEVICES,
        made: Callable[[], Spec | None] = lambda: None,
    ) -> None:
        """`devices` is where we see /dev of the node. `made`: a specification for cards that no
        file has."""
        self.directories = directories
        self._devices = devices
        self._made = made
        self._seen: object = None
        self._specs: list[Spec] = []
        self.wrong: list[str] = []  # what is wrong with files that were not understood

    def edits(self, uuid: str) -> Edits | None:
        """What a container needs for the card; None: no specification has it. Raises OSError for a
        device node that is not there."""
        found = edits_for(self._read(), uuid)
        if found is None and (made := self._made()) is not None:
            found = edits_for([made], uuid)
        return None if found is None else completed(found, self._devices)

    def kind(self, uuid: str) -> str:
        """Of the specification that has the card; empty: none has it."""
        kinds = [
            spec.kind for spec in self._read() for device in spec.devices if device.name == uuid
        ]
        return kinds[-1] if kinds else ""

    def _read(self) -> list[Spec]:
        seen = [(path, *_version(path)) for path in _files(self.directories)]
        if seen != self._seen:
            self._specs, self.wrong = read_specs(self.directories)
            self._seen = seen
        return self._specs


def _version(path: Path) -> tuple[int, int, int]:
    """Differs when the file does: writers replace files, or change their time or size."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_size


def edits_for(specs: Sequence[Spec], uuid: str) -> Edits | None:
    """What a container needs for the card; None: no specification has a device of this name."""
    found = None
    for spec in specs:
        for device in spec.devices:
            if device.name == uuid:
                found = spec.container_edits + device.container_edits
    return found


def completed(edits: Edits, devices: Path = _DEVICES) -> Edits:
    """With type and numbers of every device node, from the node's own where they are not given.
    Raises OSError if it has none."""
    nodes = tuple(_completed(node, devices) for node in edits.device_nodes)
    return msgspec.structs.replace(edits, device_nodes=nodes)


def _completed(node: DeviceNode, devices: Path) -> DeviceNode:
    # A specification may give the type alone, or nothing.
    if node.type and (node.major or node.minor):
        return node
    # The name counts and not the directory: the GPU Operator's driver has its devices below
    # /run/nvidia/driver/dev, with the same numbers.
    name = (node.host_path or node.path).rpartition("/dev/")[2]
    found = os.stat(devices / name)
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        raise OSError(f"{devices / name} is no device")
    return msgspec.structs.replace(
        node,
        type="b" if stat.S_ISBLK(found.st_mode) else "c",
        major=os.major(found.st_rdev),
        minor=os.minor(found.st_rdev),
    )


def _files(directories: Sequence[Path]) -> Iterator[Path]:
    for directory in directories:
        try:
            names = sorted(os.listdir(directory))[:_MAX_FILES]
        except OSError:  # most nodes have only one of the directories
            continue
        yield from (directory / name for name in names if name.endswith((".json", ".yaml")))


def _text(path: Path) -> str:
    # Not blocking: to open a pipe would wait for a writer, and containers would wait with us.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise BadSpec("wanted a file, found something else")
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise BadSpec(f"more than {_MAX_BYTES >> 20} MiB")
    return raw.decode()
