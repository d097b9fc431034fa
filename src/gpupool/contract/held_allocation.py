"""held_allocation: what a bound pod holds of the cards of its node, or may hold.

A newer version of gpupool may have written the allocation, or another scheduler bound the pod and
wrote none. Such a pod has cards all the same. What cannot be read is never taken for free: other
annotations may name the cards; if none does, any card of the node may be meant.
"""

from collections.abc import Iterable, Mapping

from gpupool.contract.allocation import BadAllocation, allocation_of
from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_MEM_IDX,
    ANNOTATION_MEM_POD,
    GROUP_DEVICES,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.core.gpu import Allocation, GpuAsk, Unread
from kubeclient.objects import Obj

_RESOURCES = (RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT)
_MOST_DIGITS = 4  # of an index; a longer one names no card


def held_allocation(pod: Obj, asks: Iterable[GpuAsk]) -> Allocation:
    """`asks`: what its containers ask for, as far as that makes sense."""
    annotations = pod["metadata"].get("annotations") or {}
    text = annotations.get(ANNOTATION_ALLOCATION)
    known = Allocation()
    try:
        known = allocation_of(text) if text else known
        why = "" if text else f"it has no annotation {ANNOTATION_ALLOCATION}"
    except BadAllocation as error:
        why = f"the annotation {ANNOTATION_ALLOCATION} cannot be read: {error}"
    told = {gpus.container for gpus in known.containers if gpus.shares}
    untold = [name for name in containers_with_gpus(pod["spec"]) if name not in told]
    if not untold:
        return known
    why = why or f"the annotation {ANNOTATION_ALLOCATION} does not name container {untold[0]}"
    uuids = _devices(annotations, untold)
    if uuids or text:
        return Allocation(known.containers, Unread(why, uuids))
    indexes = _indexes(annotations.get(ANNOTATION_MEM_IDX, ""))
    asked = sum(ask.units * ask.cards for ask in asks)
    # A share that was resized differs from what the pod asks for.
    is_as_asked = bool(indexes and asked) and annotations.get(ANNOTATION_MEM_POD) == str(asked)
    return Allocation((), Unread(why, indexes=indexes, has_what_it_asks=is_as_asked))


def containers_with_gpus(spec: Obj) -> list[str]:
    """Also those whose request makes no sense: the pod runs, and may have cards."""
    return [
        container["name"]
        for container in (*(spec.get("initContainers") or ()), *spec["containers"])
        if _asks((container.get("resources") or {}).get("limits") or {})
    ]


def _asks(limits: Obj) -> bool:
    return any(str(limits.get(name, "0")) != "0" for name in _RESOURCES)


def _devices(annotations: Mapping[str, str], containers: Iterable[str]) -> frozenset[str]:
    """The cards of these containers; empty if those of one of them are not named."""
    found: set[str] = set()
    for name in containers:
        named = {uuid for uuid in annotations.get(f"{GROUP_DEVICES}/{name}", "").split(",") if uuid}
        if not named:
            return frozenset()
        found |= named
    return frozenset(found)


def _indexes(text: str) -> frozenset[int]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) <= _MOST_DIGITS for part in parts):
        return frozenset()
    return frozenset(map(int, parts))
