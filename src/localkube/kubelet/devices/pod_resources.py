"""What the kubelet tells of its grants: the pod-resources API. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kubeclient.kubeletapi.messages import (
    AllocatableResourcesResponse,
    ContainerDevices,
    ContainerResources,
    ListPodResourcesResponse,
    PodResources,
)
from localkube.kubelet.devices.grants import Grant

# uid of a pod -> namespace and name; None for one that is gone.
NameOf: TypeAlias = Callable[[str], tuple[str, str] | None]


def held(grants: Iterable[Grant], name_of: NameOf) -> ListPodResourcesResponse:
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


def all_devices(ids: Mapping[str, Iterable[str]]) -> AllocatableResourcesResponse:
    return AllocatableResourcesResponse(
        tuple(ContainerDevices(resource, tuple(listed)) for resource, listed in ids.items())
    )
