"""The limits of a pod for memory and local storage, and the kubelet's messages about them. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from kubeclient.objects import Obj
from kubeclient.placement import amounts
from kubeclient.quantity import parse, value

_MEMORY, _STORAGE = "memory", "ephemeral-storage"


class EmptyDir(NamedTuple):
    number: int  # of the volume in the pod
    limit: int
    text: str  # the limit as it was written


class PodLimits(NamedTuple):
    memory: Mapping[str, int]  # by container
    storage: Mapping[str, tuple[int, str]]  # by container: bytes, and as it was written
    empty_dirs: Mapping[str, EmptyDir]  # by volume

    def __bool__(self) -> bool:
        return bool(self.memory or self.storage or self.empty_dirs)


NO_LIMITS = PodLimits({}, {}, {})


def pod_limits(obj: Obj) -> PodLimits:
    spec = obj["spec"]
    memory: dict[str, int] = {}
    storage: dict[str, tuple[int, str]] = {}
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        written = (container.get("resources") or {}).get("limits") or {}
        limits = amounts(written)
        if _MEMORY in limits:
            memory[container["name"]] = limits[_MEMORY]
        if _STORAGE in limits:
            storage[container["name"]] = (limits[_STORAGE], str(written[_STORAGE]))
    empty_dirs = {
        volume["name"]: EmptyDir(number, value(parse(str(limit))), str(limit))
        for number, volume in enumerate(spec.get("volumes") or ())
        if (limit := (volume.get("emptyDir") or {}).get("sizeLimit"))
    }
    return PodLimits(memory, storage, empty_dirs)


def storage_complaint(
    limits: PodLimits, containers: Mapping[str, int], volumes: Mapping[str, int]
) -> str | None:
    """The limit that is exceeded, if any. `containers` and `volumes`: bytes that each uses."""
    for name, volume in limits.empty_dirs.items():
        if volume.limit and volumes.get(name, 0) > volume.limit:
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{volume.text}". '
    for name, (limit, text) in limits.storage.items():
        if containers.get(name, 0) > limit:
            return f'Container {name} exceeded its local ephemeral storage limit "{text}". '
    total = sum(limit for limit, _ in limits.storage.values())
    if total and sum(containers.values()) + sum(volumes.values()) > total:
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
    return None
