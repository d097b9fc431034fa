"""Starts the launcher so that no container can change the launcher's program file.

A container's program begins as a fork of the launcher. Until its exec, /proc/self/exe leads to the
Python that runs the launcher, and not through a mount of the container, which would be read-only,
but through the machine's own. Whoever executes "/proc/self/exe", or a script that names it as its
interpreter, takes this way along: he could change the file's permissions, and at times its content.

So the launcher executes its Python from a read-only mount, in namespaces of its own.
"""

import contextlib
import os
import sys

from localkube.kubelet.sandbox import shield


def is_shielded() -> bool:
    """Whether this process runs from a read-only mount."""
    return bool(os.statvfs("/proc/self/exe").f_flag & os.ST_RDONLY)


def main() -> None:
    # If it fails, containers have no wall: the launcher says so, with the kernel's reason.
    with contextlib.suppress(OSError):
        shield(os.path.realpath(sys.executable))
    launcher = "localkube.kubelet.launcher"
    os.execv(sys.executable, [sys.executable, "-m", launcher, *sys.argv[1:]])


if __name__ == "__main__":
    main()
