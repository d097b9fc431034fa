"""Labels of SELinux, without which containers cannot read files that the node mounts into them.

On a node that enforces SELinux, a container that may not read the limiter starts without it: the
loader says so on stderr and goes on. So files that cannot be labelled must not be given out.
"""

import os
from pathlib import Path

# What runtimes label the layers of images with: every container may read and execute it.
_READABLE = b"system_u:object_r:container_ro_file_t:s0"
_ATTRIBUTE = "security.selinux"
_OWN_LABEL = Path("/proc/self/attr/current")


def is_on() -> bool:
    """Whether this process has a label of SELinux: user:role:type:level.

    Containers do not see whether the node enforces it, so a permissive node counts, too.
    """
    try:
        label = _OWN_LABEL.read_text(encoding="ascii", errors="replace")
    # The file is not there, or cannot be read, without a security module that uses it. AppArmor
    # uses it as well, with labels of another form.
    except OSError:
        return False
    return label.count(":") >= 3


def let_containers_read(directory: Path) -> None:
    """Labels the directory and its files. Raises OSError: we may not do that."""
    for path in (directory, *directory.iterdir()):
        os.setxattr(path, _ATTRIBUTE, _READABLE, follow_symlinks=False)
