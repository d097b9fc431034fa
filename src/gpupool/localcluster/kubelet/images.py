"""What runs for an image. Nothing is pulled: an image is only a name, and this says for what.

shells (busybox, debian, ...)   the command runs with this machine's programs
python                          the same, and `python` is the Python that runs gpupool
nginx                           a small web server of ours
pause                           waits
tensorflow                      a notebook's page that shows the GPUs
the GPU samples of the docs     take GPU memory: all that they see, or what their variables allow
those of the cluster file       what it says
any other                       its command, if this machine has the program;
                                without a command, a stand-in that waits and says so
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"

_SHELLS = frozenset(
    {
        "busybox",
        "alpine",
        "debian",
        "ubuntu",
        "bash",
        "centos",
        "fedora",
        "rockylinux",
        "almalinux",
        "amazonlinux",
        "buildpack-deps",
        "cuda",
    }
)
# registry.example:5000/team/name:tag@sha256:... -> registry.example:5000/team/name and name
_NAME = re.compile(r"(?P<repository>(?:.*/)?(?P<name>[^/:@]+))(?::[^/@]*)?(?:@.*)?")


class Built(Enum):
    """What of ours runs in place of a program: its module, and arguments before the image."""

    NONE = ()
    WEB = ("stand_in", "web")
    PAUSE = ("stand_in", "pause")
    STAND_IN = ("stand_in", "stand-in")
    NOTEBOOK = ("notebook",)
    GPU_PLAYER = ("gpu_memory", "--allowed")
    GPU_TAKER = ("gpu_memory",)


_PORTS = {Built.WEB: 80, Built.NOTEBOOK: 8888}
_BUILT = {
    "pause": Built.PAUSE,
    "pause-amd64": Built.PAUSE,
    "tensorflow": Built.NOTEBOOK,
    "gpu-player": Built.GPU_PLAYER,
    "tensorflow-gpu-mem": Built.GPU_TAKER,
}
# Files that an image has: commands of manifests name them.
_FILES = {"tensorflow-gpu-mem": {"/app/main.py": PROGRAMS / "gpu_memory.py"}}


@dataclass(frozen=True, slots=True)
class Image:
    """One that the cluster file describes."""

    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    directory: str = ""  # of this machine; the container sees it where it is


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]
    built: Built = Built.NONE
    files: Mapping[str, Path] = field(default_factory=dict)  # path in the container -> here

    @property
    def default_port(self) -> int | None:
        return _PORTS.get(self.built)


def image_name(image: str) -> str:
    """The last part of an image's name, without tag and digest."""
    found = _NAME.fullmatch(image)
    return found["name"] if found else image


def repository(image: str) -> str:
    """An image's name without tag and digest."""
    found = _NAME.fullmatch(image)
    return found["repository"] if found else image


def program(
    image: str, command: Sequence[str], args: Sequence[str], known: Mapping[str, Image]
) -> Program:
    """The program for a container with this image, `command` and `args`; `known` is what the
    cluster file adds."""
    own = known.get(image) or known.get(repository(image))
    if own is not None:
        files = {own.directory: Path(own.directory)} if own.directory else {}
        rest = tuple(args) if command or args else own.args
        return Program((*(command or own.command), *rest), files=files)
    name = image_name(image)
    if command:
        return Program((*command, *args), files=_FILES.get(name, {}))
    if name in _SHELLS:
        return Program(tuple(args) or ("bash" if name == "bash" else "sh",))
    if name == "python":
        return Program(tuple(args) or ("python3",))
    if name == "nginx" and (not args or args[0] == "nginx"):
        return Program((), Built.WEB)
    return Program((), _BUILT.get(name, Built.STAND_IN))
