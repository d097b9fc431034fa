"""The program that runs for an image. Nothing is pulled: an image is only a name.

shells (busybox, debian, ...)   the command runs with this machine's programs
python                          the same, and `python` is the Python that runs localkube
nginx                           a small web server of localkube's
pause                           waits
those of the settings           a program that stands in for the image (`stand_ins`), or the
                                command that the settings give (`images`)
any other                       its command, if this machine has the program;
                                without a command, a stand-in that waits and says so
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    }
)
# registry.example:5000/team/name:tag@sha256:... -> registry.example:5000/team/name and name
_NAME = re.compile(r"(?P<repository>(?:.*/)?(?P<name>[^/:@]+))(?::[^/@]*)?(?:@.*)?")


@dataclass(frozen=True, slots=True)
class StandIn:
    """A Python program that runs in place of an image's own. Its module has a `main`, which finds
    `arguments` and then the image's name in `sys.argv`."""

    module: str
    arguments: tuple[str, ...] = ()
    port: int | None = None  # where it listens if the container declares no port
    # Files that the image has, because commands of manifests name them: path in the container ->
    # file of this machine.
    files: Mapping[str, Path] = field(default_factory=dict)
    # Variables that the image sets; the pod's own replace them.
    variables: Mapping[str, str] = field(default_factory=dict)
    # It uses packages of the Python that runs localkube; others start faster without them.
    with_packages: bool = False
    # It runs what its users type, as the image would: it gets the container's `args` after the
    # image's name, and is held to the container's memory limit.
    runs_users_code: bool = False


_STAND_IN = "localkube.kubelet.programs.stand_in"
_WEB = StandIn(_STAND_IN, ("web",), port=80)
_PAUSE = StandIn(_STAND_IN, ("pause",))
_WAITS = StandIn(_STAND_IN, ("stand-in",))
_BUILT_IN = {"pause": _PAUSE, "pause-amd64": _PAUSE}


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the settings describe by its command."""

    command: tuple[str, ...]
    args: tuple[str, ...] = ()
    directory: str = ""  # of this machine; the container sees it where it is


@dataclass(frozen=True, slots=True)
class KnownImages:
    """What the settings of the nodes say of images."""

    commands: Mapping[str, Image] = field(default_factory=dict)  # by name with or without tag
    # By the name's last part, or all of one owner: "tensorflow", "jupyter/*".
    stand_ins: Mapping[str, StandIn] = field(default_factory=dict)
    shells: frozenset[str] = frozenset()  # last parts of names: no program of their own


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]
    stand_in: StandIn | None = None  # runs in place of the image's program, whose args `argv` are
    files: Mapping[str, Path] = field(default_factory=dict)  # path in the container -> here

    @property
    def only_waits(self) -> bool:
        """The image is unknown: the stand-in only makes the pod run."""
        return self.stand_in is _WAITS


def image_name(image: str) -> str:
    """The last part of an image's name, without tag and digest."""
    found = _NAME.fullmatch(image)
    return found["name"] if found else image


def repository(image: str) -> str:
    """An image's name without tag and digest."""
    found = _NAME.fullmatch(image)
    return found["repository"] if found else image


def image_variables(image: str, known: KnownImages) -> Mapping[str, str]:
    """The variables that the image sets, also for a container with a command of its own."""
    if image in known.commands or repository(image) in known.commands:
        return {}
    stand_in = _stand_in(image, known)
    return stand_in.variables if stand_in else {}


def _stand_in(image: str, known: KnownImages) -> StandIn | None:
    *owner, name = repository(image).split("/")
    every = f"{owner[-1]}/*" if owner else ""
    return known.stand_ins.get(name) or known.stand_ins.get(every) or _BUILT_IN.get(name)


def program(image: str, command: Sequence[str], args: Sequence[str], known: KnownImages) -> Program:
    """The program for a container with this image, `command` and `args`."""
    own = known.commands.get(image) or known.commands.get(repository(image))
    if own is not None:
        files = {own.directory: Path(own.directory)} if own.directory else {}
        rest = tuple(args) if command or args else own.args
        return Program((*(command or own.command), *rest), files=files)
    name = image_name(image)
    stand_in = _stand_in(image, known)
    if command:
        return Program((*command, *args), files=stand_in.files if stand_in else {})
    if name in _SHELLS or name in known.shells:
        return Program(tuple(args) or ("bash" if name == "bash" else "sh",))
    if name == "python":
        return Program(tuple(args) or ("python3",))
    if name == "nginx" and (not args or args[0] == "nginx"):
        return Program((), _WEB)
    return Program(tuple(args), stand_in or _WAITS)
