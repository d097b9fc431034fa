"""Which pod and which container a process of the node belongs to."""

import os
import re
from collections.abc import Callable

from kubeclient.objects import Obj

# From a pid to the uid of its pod or the id of its container; empty: it belongs to no pod.
Owner = Callable[[int], str]

_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}"
_POD_CGROUP = re.compile(f"pod({_UID})")
# Right below the pod's cgroup, with the name of the runtime before the id and .scope after it if
# systemd manages the cgroups. Further below, a container may have made cgroups of any name itself.
# In crio-conmon-... CRI-O watches the container, from the node.
_CONTAINER_CGROUP = re.compile(
    rf"pod{_UID}(?:\.slice)?/(?!crio-conmon-)(?:[a-z][a-z-]*-)?([0-9a-f]{{64}})\b"
)
_PROC = "/proc"
_PAGE = 64 * 1024
# Where a pod says how its containers are.
STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def owner_by_cgroup(pid: int) -> str:
    """The uid of the pod that a process of this node belongs to; empty: it belongs to no pod.

    The kubelet puts every container into a cgroup whose path names the pod's uid, with `-` or,
    under systemd, with `_` in it. A process cannot leave its cgroup without rights over the node,
    so a program cannot hide its memory from the audit, nor let it count as another pod's. The
    agent must see the node's processes for this (hostPID).
    """
    found = _POD_CGROUP.search(_cgroups(pid))
    return found[1].replace("_", "-") if found else ""


def container_by_cgroup(pid: int) -> str:
    """The id of its container; empty: not known. Container runtimes differ in how they name
    cgroups below that of the pod."""
    found = _CONTAINER_CGROUP.search(_cgroups(pid))
    return found[1] if found else ""


def container_names(pod: Obj) -> dict[str, str]:
    """Ids of the pod's containers -> their names."""
    status = pod.get("status") or {}
    ids = {
        str(each.get("containerID") or "").partition("://")[2]: str(each.get("name", ""))
        for key in STATUSES
        for each in status.get(key) or ()
    }
    return {id: name for id, name in ids.items() if id}


def owner_names(pod: Obj) -> list[str]:
    """All that an `Owner` may answer for processes of the pod."""
    return [pod["metadata"]["uid"], *container_names(pod)]


def _cgroups(pid: int) -> str:
    # Not by pathlib, which takes three times as long: a node has hundreds of these every few
    # seconds.
    try:
        file = os.open(f"{_PROC}/{pid}/cgroup", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return b"".join(iter(lambda: os.read(file, _PAGE), b"")).decode("ascii", "replace")
    except OSError:  # it has ended meanwhile
        return ""
    finally:
        os.close(file)
