"""The Python of containers: that which runs localkube, with its packages.

It is a virtual environment of the cluster, so that a program is called as it was started: `python`.
A script that starts the Python of this machine would be called by a path of this machine, which no
image has.
"""

import os
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

_NAMES = ("python", "python3")
_SYSTEM_TOO = "include-system-site-packages=true"
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def make_python(directory: Path) -> Path:
    """Makes it in `directory`, or anew if this is not the Python that it was made for. Its programs
    are in `bin`."""
    interpreter = os.path.realpath(sys.executable)
    links = {
        directory / f"lib/{_VERSION}/site-packages": sysconfig.get_path("purelib"),
        **{directory / "bin" / name: interpreter for name in _NAMES},
    }
    if all(_leads_to(path, target) for path, target in links.items()):
        return directory
    system = "true" if _sees_system_packages() else "false"
    text = f"home = {os.path.dirname(interpreter)}\ninclude-system-site-packages = {system}\n"
    (directory / "pyvenv.cfg").write_text(text, encoding="utf-8")
    for path, target in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    return directory


def _sees_system_packages() -> bool:
    if sys.prefix == sys.base_prefix:
        return True
    with suppress(OSError):
        lines = Path(sys.prefix, "pyvenv.cfg").read_text(encoding="utf-8").lower().splitlines()
        return any(line.replace(" ", "") == _SYSTEM_TOO for line in lines)
    return False


def _leads_to(path: Path, target: str) -> bool:
    try:
        return os.readlink(path) == target
    except OSError:
        return False
