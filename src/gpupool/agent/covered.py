"""Whether something is mounted over the limiter's files in a container, seen from the node. Pure,
but for `mounts_of`.

The limiter itself refuses a limit file that is not the node's. But it cannot refuse where it is not
loaded, because a link in an image or a volume has led a mount over the list of libraries to
preload. The kernel shows the node every mount of a process, with the path to which links were
resolved.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gpupool.agent.owners import Owner, owner_names
from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import LIMITER_DIRECTORY, LIMITS_DIRECTORY, PRELOAD_LIST
from gpupool.core.gpu import Isolation
from gpupool.hardware.driver import ProgramUse
from kubeclient.objects import Obj

# From a pid to the text of its mountinfo; empty: the process has ended.
MountsOf = Callable[[int], str]

_PLACES = (LIMITS_DIRECTORY, PRELOAD_LIST, LIMITER_DIRECTORY)


class _Mount(NamedTuple):
    number: str
    parent: str
    place: str


def mounts_of(pid: int) -> str:
    """The agent must see the node's processes for this (hostPID)."""
    try:
        return Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def covered_pods(
    pods: Iterable[Obj], uses: Iterable[ProgramUse], owner: Owner, mountinfo: MountsOf
) -> dict[str, str]:
    """By uid of the pod: the place of the limiter that something is mounted over. Of pods all of
    whose containers must be limited, since the owner of a process may be known by pod only."""
    limited = {
        name: pod["metadata"]["uid"]
        for pod in pods
        if _is_limited(pod)
        for name in owner_names(pod)
    }
    found = {}
    for use in uses:
        uid = limited.get(owner(use.pid))
        place = covered(mountinfo(use.pid)) if uid else ""
        if uid and place:
            found[uid] = place
    return found


def _is_limited(pod: Obj) -> bool:
    return all(gpus.isolation is Isolation.LIMIT for gpus in pod_allocation(pod).containers)


def covered(mountinfo: str) -> str:
    """The first place of the limiter that something is mounted over; empty: none is.

    A process without a mount there at all is not accused: sandboxes of another kind have their
    mounts inside, where the node cannot look."""
    lines = (line.split(" ", 5) for line in mountinfo.splitlines())
    mounts = [_Mount(words[0], words[1], words[4]) for words in lines if len(words) > 5]
    by_number = {mount.number: mount for mount in mounts}
    return next((place for place in _PLACES if _is_covered(place, mounts, by_number)), "")


def _is_covered(place: str, mounts: list[_Mount], by_number: Mapping[str, _Mount]) -> bool:
    there = [mount for mount in mounts if f"{mount.place}/".startswith(f"{place}/")]
    if len(there) != 1:
        return bool(there)
    # Mounts at the directories above must be below ours, or they lead the path past it.
    below, next_one = {there[0].number}, by_number.get(there[0].parent)
    while next_one and next_one.number not in below:
        below.add(next_one.number)
        next_one = by_number.get(next_one.parent)
    above = (m for m in mounts if f"{place}/".startswith(f"{m.place.rstrip('/')}/"))
    return any(mount.number not in below for mount in above)
