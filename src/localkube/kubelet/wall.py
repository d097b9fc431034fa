"""Whether this machine lets its user build the wall around containers: tried once, in a child."""

import os
import sys
from pathlib import Path

from localkube.kubelet.confine import confine
from localkube.kubelet.launched import enter_as_program, import_nothing_more
from localkube.kubelet.node_files import make_private
from localkube.kubelet.sandbox import Bind, View, leave
from localkube.removal import remove_tree


def missing_wall(directory: Path) -> str:
    """What the kernel refuses; empty: nothing. Makes a directory in `directory` for the time of the
    trial."""
    if sys.platform != "linux":
        return "this system is not Linux"
    root = make_private(directory / "probe")
    view = View(str(root), "probe", 0, 0, (Bind(str(root), "/tmp"),))
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _try(view, writing)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    remove_tree(root)
    return said or ("" if status == 0 else f"the trial ended with status {status}")


def no_wall_words(missing: str) -> str:
    """For people: what it means, and what can be done."""
    return (
        f"this machine allows no wall around containers ({missing}). Without it, programs of pods "
        "can read and change every file that you can, and end your processes: then run only "
        "manifests that you trust. The wall needs user namespaces for ordinary users (sysctl "
        "kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, on Ubuntu "
        "kernel.apparmor_restrict_unprivileged_userns=0)."
    )


def _try(view: View, writing: int) -> None:
    """Goes the way of a container's program, and ends."""
    try:
        import_nothing_more()
        leave(view)
        if child := os.fork():
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
        enter_as_program(view)
        confine()
        os._exit(0)
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no wall
        text = (error.strerror if isinstance(error, OSError) else None) or str(error)
        os.write(writing, " ".join(text.split()).encode(errors="replace"))
    finally:
        os._exit(1)
