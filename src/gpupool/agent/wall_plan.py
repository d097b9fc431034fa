"""Which memory limits the driver should hold on a node, and which of them are left over. Pure.

The limit of a container is that of its limit file: the scheduler writes both with one annotation,
also while a share shrinks. Soft and hard limit are the same, the share: a share is promised, so the
driver must guarantee it, and nobody may borrow beyond it. With equal limits no process is ever
above its soft limit, so an MPS server finds nobody to end when memory is short.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from gpupool.agent.leaves import Leaf
from gpupool.agent.owners import STATUSES, container_names
from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import GROUP_LIMITS
from gpupool.core.gpu import Isolation, Wall
from gpupool.hardware.memory_limits import MemoryLimits
from kubeclient.objects import Obj

_MIB = 1 << 20
_MOST_MIB = 2**24  # as in contract/documents.py
_ENDED = ("Succeeded", "Failed")

Shares = Mapping[str, int]  # by uuid of the card: MiB


class Plan(NamedTuple):
    wanted: dict[Leaf, Shares]  # of containers that run
    over: list[Leaf]  # of containers that have ended


def shares_of(text: str) -> Shares:
    """From the text of a limit file; empty for `unlimited`, and for lines that cannot be read:
    those are the limiter's to refuse."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) == 3 and words[1].isascii() and words[1].isdigit():
            found[words[0]] = min(int(words[1]), _MOST_MIB)
    return found


def limits_of(mib: int) -> MemoryLimits:
    return MemoryLimits(soft=mib * _MIB, hard=mib * _MIB)


def container_shares(pod: Obj, container: str) -> Shares | None:
    """What the driver should allow this container; empty: everything. None: it has no share."""
    text = (pod["metadata"].get("annotations") or {}).get(f"{GROUP_LIMITS}/{container}")
    return None if text is None else shares_of(text)


def plan(pods: Iterable[Obj], leaves: Iterable[Leaf]) -> Plan:
    """A container that the API server does not show yet is left alone: whoever started it has set
    its limits."""
    by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
    wanted: dict[Leaf, Shares] = {}
    over: list[Leaf] = []
    for leaf in leaves:
        pod = by_uid.get(leaf.pod)
        if pod is None or _has_ended(pod, leaf.container):
            over.append(leaf)
            continue
        name = container_names(pod).get(leaf.container)
        shares = container_shares(pod, name) if name is not None else None
        if shares is not None:
            wanted[leaf] = shares
    return Plan(wanted, over)


def _has_ended(pod: Obj, container: str) -> bool:
    status = pod.get("status") or {}
    if status.get("phase") in _ENDED:
        return True
    for key in STATUSES:
        for each in status.get(key) or ():
            state, last = each.get("state") or {}, each.get("lastState") or {}
            is_current = _id(each) == container
            if is_current and "terminated" in state:
                return True
            ended = (state.get("terminated") or {}, last.get("terminated") or {})
            if not is_current and container in map(_id, ended):
                return True
    return False


def _id(status: Obj) -> str:
    return str(status.get("containerID") or "").partition("://")[2]


def walls(pods: Iterable[Obj], held: Mapping[str, set[str]], wall: Wall) -> dict[str, Wall]:
    """The pods that something else than `wall` holds, by uid.

    `held`: by uid of the pod, the ids of its containers that the driver was seen to hold. A pod
    whose containers have not started yet is not judged."""
    found: dict[str, Wall] = {}
    for pod in pods:
        limited = {
            gpus.container
            for gpus in pod_allocation(pod).containers
            if gpus.isolation is Isolation.LIMIT
        }
        running = {
            id for id, name in container_names(pod).items() if name in limited and _runs(pod, id)
        }
        uid = pod["metadata"]["uid"]
        if running:
            by_driver = running <= held.get(uid, set())
            now = Wall.DRIVER if by_driver else Wall.LIMITER
            if now is not wall:
                found[uid] = now
    return found


def _runs(pod: Obj, container: str) -> bool:
    status = pod.get("status") or {}
    return any(
        _id(each) == container and "running" in (each.get("state") or {})
        for key in STATUSES
        for each in status.get(key) or ()
    )


class Leak(NamedTuple):
    """An ancestor that reserves more than all cgroups below it: a cgroup was removed before its
    soft limit was taken away."""

    path: str
    reserved: int
    needed: int


def leaks(
    tops: Iterable[str],
    leaves: Set[str],
    below: Callable[[str], Sequence[str]],
    soft: Callable[[str], int],
) -> list[Leak]:
    """The deepest first. The driver adds the soft limit of each cgroup to all its ancestors, and
    takes it away again only if it is set to 0 (backend dmem). Below a cgroup that reserves nothing
    there is none that does. `leaves`: the paths of containers' cgroups, which reserve for
    themselves."""
    found: list[Leak] = []

    def look(path: str) -> int:
        reserved = soft(path)
        if not reserved or path in leaves:
            return reserved
        needed = sum(look(each) for each in below(path))
        if needed < reserved:
            found.append(Leak(path, reserved, needed))
        return min(reserved, needed)

    for top in tops:
        look(top)
    return found
