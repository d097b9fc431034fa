"""What runs for an image. Nothing is pulled: an image is only a name, and this says for what.

shells (busybox, debian, ...)   the command runs with this machine's programs
python                          the same, and `python` is the Python that runs gpupool
nginx                           a small web server of ours
pause                           waits
any other                       its command, if this machine has the program;
                                without a command, a stand-in that waits and says so
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

STAND_IN = Path(__file__).with_name("stand_in.py")

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
# registry.example:5000/team/name:tag@sha256:... -> name
_NAME = re.compile(r"(?:.*/)?(?P<name>[^/:@]+)(?::[^/@]*)?(?:@.*)?")
_REPOSITORY = re.compile(r"(?P<repository>(?:.*/)?[^/:@]+)(?::[^/@]*)?(?:@.*)?")


class Built(Enum):
    """What of ours runs in place of a program."""

    NONE = "none"
    WEB = "web"
    PAUSE = "pause"
    STAND_IN = "stand-in"


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]
    built: Built = Built.NONE

    @property
    def default_port(self) -> int | None:
        return 80 if self.built is Built.WEB else None


def image_name(image: str) -> str:
    """The last part of an image's name, without tag and digest."""
    found = _NAME.fullmatch(image)
    return found["name"] if found else image


def repository(image: str) -> str:
    """An image's name without tag and digest."""
    found = _REPOSITORY.fullmatch(image)
    return found["repository"] if found else image


def program(image: str, command: Sequence[str], args: Sequence[str]) -> Program:
    """The program for a container with this image, `command` and `args`."""
    name = image_name(image)
    if command:
        return Program((*command, *args))
    if name in _SHELLS:
        return Program(tuple(args) or ("bash" if name == "bash" else "sh",))
    if name == "python":
        return Program(tuple(args) or ("python3",))
    if name == "nginx" and (not args or args[0] == "nginx"):
        return Program((), Built.WEB)
    if name in ("pause", "pause-amd64"):
        return Program((), Built.PAUSE)
    return Program((), Built.STAND_IN)
