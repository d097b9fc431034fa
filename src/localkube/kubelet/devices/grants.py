"""Which devices the containers of a pod request, which container holds which devices, and what the
kubelet tells others of it (the pod-resources API). Pure.

A grant outlives restarts of containers and of the kubelet: the plugin is not asked again.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

from kubeclient.kubeletapi.messages import (
    AllocatableResourcesResponse,
    CdiDevice,
    ContainerAllocateResponse,
    ContainerDevices,
    ContainerResources,
    DeviceSpec,
    ListPodResourcesResponse,
    Mount,
    PodResources,
)
from kubeclient.objects import Obj
from kubeclient.placement import amounts


class DeviceRequest(NamedTuple):
    container: str
    limits: Mapping[str, int]
    gives_back: bool  # an init container: later containers may reuse its devices


def device_requests(obj: Obj) -> Iterator[DeviceRequest]:
    """In the order of a kubelet: init containers first. Limits count; for extended resources,
    requests must be equal to them."""
    spec = obj["spec"]
    for container in spec.get("initContainers") or ():
        if limits := _limits(container):
            yield DeviceRequest(
                container["name"], limits, container.get("restartPolicy") != "Always"
            )
    for container in spec["containers"]:
        if limits := _limits(container):
            yield DeviceRequest(container["name"], limits, False)


def _limits(container: Obj) -> dict[str, int]:
    listed = amounts((container.get("resources") or {}).get("limits"))
    return {name: amount for name, amount in sorted(listed.items()) if "/" in name and amount > 0}


_Wish = TypeVar("_Wish")
_MOST_DIGITS = 18  # plugins choose the ids, and int() refuses thousands of digits
_PARTS = re.compile(r"(\d+)")


class CannotAllocate(Exception):
    """The message is the kubelet's."""


@dataclass(frozen=True, slots=True)
class Grant:
    pod: str  # uid
    container: str
    resource: str
    ids: tuple[str, ...]
    response: ContainerAllocateResponse


@dataclass(slots=True)
class Grants:
    _by_pod: dict[str, list[Grant]] = field(default_factory=dict)

    def add(self, grant: Grant) -> None:
        self._by_pod.setdefault(grant.pod, []).append(grant)

    def release(self, pod: str) -> bool:
        return self._by_pod.pop(pod, None) is not None

    def keep(self, pod: str, grants: Iterable[Grant]) -> None:
        """Replaces the grants of the pod."""
        kept = list(grants)
        if kept:
            self._by_pod[pod] = kept
        else:
            self.release(pod)

    def of_pod(self, pod: str) -> tuple[Grant, ...]:
        return tuple(self._by_pod.get(pod, ()))

    def of_container(self, pod: str, container: str) -> tuple[Grant, ...]:
        return tuple(g for g in self._by_pod.get(pod, ()) if g.container == container)

    def in_use(self, resource: str) -> set[str]:
        return {id for grant in self if grant.resource == resource for id in grant.ids}

    def pods(self) -> frozenset[str]:
        return frozenset(self._by_pod)

    def __iter__(self) -> Iterator[Grant]:
        for grants in self._by_pod.values():
            yield from grants


def available(resource: str, healthy: frozenset[str], in_use: set[str], needed: int) -> set[str]:
    """The free healthy devices. Raises CannotAllocate if there are too few."""
    if not healthy:
        raise CannotAllocate(
            f"no healthy devices present; cannot allocate unhealthy devices {resource}"
        )
    free = set(healthy) - in_use
    if len(free) < needed:
        raise CannotAllocate(
            f"requested number of devices unavailable for {resource}. "
            f"Requested: {needed}, Available: {len(free)}"
        )
    return free


def chosen(needed: int, first: Iterable[str], free: Iterable[str]) -> tuple[str, ...]:
    """`needed` devices: the preferred ones first, then the lowest ids."""
    free = set(free)
    order = [*(id for id in first if id in free), *sorted(free, key=_natural)]
    return tuple(dict.fromkeys(order))[:needed]


def _natural(id: str) -> list[tuple[int, str]]:
    """A sort key by which device-2 comes before device-10."""
    return [
        (int(part), "") if part.isdecimal() and len(part) <= _MOST_DIGITS else (0, part)
        for part in _PARTS.split(id)
    ]


def merged(grants: Iterable[Grant]) -> ContainerAllocateResponse:
    """The answers of all plugins for a container. If two of them disagree, the first one counts."""
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    devices: dict[str, DeviceSpec] = {}
    cdi: dict[str, CdiDevice] = {}
    for grant in sorted(grants, key=lambda grant: grant.resource):
        response = grant.response
        _take(envs, response.envs)
        _take(annotations, response.annotations)
        _take(mounts, {mount.container_path: mount for mount in response.mounts})
        _take(devices, {device.container_path: device for device in response.devices})
        _take(cdi, {device.name: device for device in response.cdi_devices})
    return ContainerAllocateResponse(
        envs, tuple(mounts.values()), tuple(devices.values()), annotations, tuple(cdi.values())
    )


def _take(into: dict[str, _Wish], more: Mapping[str, _Wish]) -> None:
    for key, value in more.items():
        into.setdefault(key, value)


# uid of a pod -> namespace and name; None for one that is gone.
NameOf: TypeAlias = Callable[[str], tuple[str, str] | None]


def held_devices(grants: Iterable[Grant], name_of: NameOf) -> ListPodResourcesResponse:
    pods: dict[str, dict[str, list[ContainerDevices]]] = {}
    for grant in grants:
        devices = ContainerDevices(grant.resource, grant.ids)
        pods.setdefault(grant.pod, {}).setdefault(grant.container, []).append(devices)
    named = ((name_of(uid), containers) for uid, containers in pods.items())
    return ListPodResourcesResponse(
        tuple(
            PodResources(
                name[1],
                name[0],
                tuple(
                    ContainerResources(container, tuple(devices))
                    for container, devices in containers.items()
                ),
            )
            for name, containers in named
            if name is not None
        )
    )


def allocatable_devices(ids: Mapping[str, Iterable[str]]) -> AllocatableResourcesResponse:
    return AllocatableResourcesResponse(
        tuple(ContainerDevices(resource, tuple(listed)) for resource, listed in ids.items())
    )
