"""Which containers run without the card that they were promised, seen from the node. Pure, but for
`pids_of_containers` and `pids_of_node`.

Where others put cards into containers (`core.ways.OTHERS_PUT_IN`), nobody asks us, and a runtime
goes on without whoever should have done it. Where the runtime asks before it starts a container,
such a one does not start (`start_check.py`). The limiter notices it in containers that have it
(native/isolation/core/promised_card.c). All others are looked at from outside, once, after they
have started: the kernel shows the node every mount of a process, and each of these ways mounts
files of the driver.

Nobody is accused on a guess. A container counts as without its card only if none of its processes
has a file of the driver: a sandbox inside may hide them from some. Pods of other runtime classes
are passed over, as the mounts of other sandboxes are inside of them. And where the agent's own
container got the driver by such a way and shows no such mount, nobody is looked at.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from gpupool.agent.covered import MountsOf
from gpupool.agent.owners import Owner
from gpupool.agent.way_facts import OwnDriver
from gpupool.contract.allocation import pod_allocation
from gpupool.core.ways import OTHERS_PUT_IN, Ways
from kubeclient.objects import Obj

# From the ids of containers to their processes.
PidsOf = Callable[[Collection[str]], Mapping[str, list[int]]]

# Where a mount of NVIDIA's runtime or plugin is: a library, a program or a device of the driver.
_DRIVER = re.compile(
    r"/(?:libcuda|libnvidia-[\w-]+)\.so|/dev/(?:nvidia|dxg)|/nvidia-smi$|^/usr/local/nvidia(?:/|$)"
)
# Of mountinfo. A container with the root of a busy node in it may have more: what is not looked at
# may be the driver.
MOST_TEXT = 1 << 20
_STATUSES = ("containerStatuses", "initContainerStatuses")


class Started(NamedTuple):
    """A container with cards that runs."""

    uid: str  # of its pod
    name: str
    id: str


def started(pods: Iterable[Obj], ways: Ways) -> Iterator[Started]:
    """The containers whose cards come by these ways, if others put them in.

    Not those of pods from before the present way: they may have got their cards by another, which
    shows no file of the driver, and which they keep however often they start again.
    """
    if ways.chosen not in OTHERS_PUT_IN:
        return
    for pod in pods:
        is_older = pod["metadata"].get("creationTimestamp", "") < ways.since
        is_seen = (pod["spec"].get("runtimeClassName") or "") in ("", ways.runtime_class)
        if is_seen and not is_older:
            names = {gpus.container for gpus in pod_allocation(pod).containers}
            yield from _running(pod, names)


def _running(pod: Obj, names: Collection[str]) -> Iterator[Started]:
    status = pod.get("status") or {}
    for each in (each for key in _STATUSES for each in status.get(key) or ()):
        # Before that, the runtime may be at work on its mounts.
        is_running = "running" in (each.get("state") or {})
        id = str(each.get("containerID") or "").partition("://")[2]
        if is_running and id and each.get("name") in names:
            yield Started(pod["metadata"]["uid"], each["name"], id)


def has_driver(mountinfo: str) -> bool:
    return any(map(_DRIVER.search, _places(mountinfo)))


def places(mountinfo: str) -> set[str]:
    """Where something is mounted."""
    return set(_places(mountinfo))


def _places(mountinfo: str) -> Iterator[str]:
    lines = (line.split(" ", 5) for line in mountinfo[:MOST_TEXT].splitlines())
    return (words[4] for words in lines if len(words) > 5)


def can_tell(own: OwnDriver | None, mountinfo: MountsOf) -> bool:
    """Not where the agent's own container got the driver, and shows no file of it."""
    return own is None or not own.arrived() or has_driver(mountinfo(os.getpid()))


def verdict(pids: Iterable[int], mountinfo: MountsOf) -> bool | None:
    """Whether the container has its card; None: none of its processes is there any more, or one has
    too many mounts."""
    found: bool | None = None
    is_cut = False
    for text in map(mountinfo, pids):  # a program may have thousands of processes: one is enough
        if has_driver(text):
            return True
        is_cut |= len(text) > MOST_TEXT
        found = False if text else found
    return None if is_cut else found


def pids_of_node(container: Owner) -> PidsOf | None:
    """None: the agent does not see the node's processes (no hostPID). Then its own is the first of
    a PID namespace."""
    return pids_of_containers(container) if os.getpid() != 1 else None


def pids_of_containers(container: Owner) -> PidsOf:
    def find(ids: Collection[str]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for name in os.listdir("/proc"):
            if name.isdecimal() and (id := container(int(name))) in ids:
                found.setdefault(id, []).append(int(name))
        return found

    return find
