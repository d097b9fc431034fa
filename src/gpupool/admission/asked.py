"""What the containers of a pod ask of GPUs, as written: still unchecked."""

from collections.abc import Iterator
from typing import NamedTuple

from gpupool.contract.names import (
    RESOURCE_GPU,
    RESOURCE_GPU_ALPHA,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.contract.objects import Obj

GPU_RESOURCES = (RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT, RESOURCE_GPU_ALPHA)


class Place(NamedTuple):
    """A container, and where in the pod it stands."""

    field: str  # spec.containers[0]
    container: Obj

    def amounts(self, kind: str) -> Obj:
        """Its `limits` or `requests`."""
        return (self.container.get("resources") or {}).get(kind) or {}

    def asks(self, resource: str) -> bool:
        return resource in self.amounts("limits")


def places(pod: Obj) -> Iterator[Place]:
    """All containers, in the order in which they start."""
    spec = pod["spec"]
    for key in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(key) or ()):
            yield Place(f"spec.{key}[{i}]", container)


def gpu_places(pod: Obj) -> list[Place]:
    return [
        place
        for place in places(pod)
        if any(place.asks(name) or name in place.amounts("requests") for name in GPU_RESOURCES)
    ]


def is_shared(place: Place) -> bool:
    return place.asks(RESOURCE_GPU_MEM)
