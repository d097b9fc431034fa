"""Whether this machine lets its user build the wall around containers: tried once, in a child."""

import os
from pathlib import Path

from localkube.kubelet.confine import confine
from localkube.kubelet.launched import enter_as_program
from localkube.kubelet.node_files import make_private, remove_tree
from localkube.kubelet.sandbox import Bind, View, leave


def missing_wall(directory: Path) -> str:
    """What the kernel refuses; empty: nothing. Makes a directory in `directory` for the time of the
    trial."""
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


def _try(view: View, writing: int) -> None:
    """Goes the way of a container's program, and ends."""
    try:
        leave(view)
        if child := os.fork():
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
        enter_as_program(view)
        confine()
        os._exit(0)
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no wall
        os.write(writing, " ".join(str(error).split()).encode(errors="replace"))
    finally:
        os._exit(1)
