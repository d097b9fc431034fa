"""What the containers of a pod ask of GPUs, as written: still unchecked."""

from collections.abc import Iterator
from typing import NamedTuple

from gpupool.contract.names import (
    RESOURCE_GPU,
    RESOURCE_GPU_ALPHA,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from kubeclient.objects import Obj
from kubeclient.quantity import NANOS, ParseError, parse, value

GPU_RESOURCES = (RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT, RESOURCE_GPU_ALPHA)


_KINDS = ("limits", "requests")


class Place(NamedTuple):
    """A container, and where in the pod it stands."""

    field: str  # spec.containers[0]
    container: Obj

    def amounts(self, kind: str) -> Obj:
        """Its `limits` or `requests`."""
        return (self.container.get("resources") or {}).get(kind) or {}

    def asks(self, resource: str) -> bool:
        """For more than nothing: templates write 0 for a container without GPUs."""
        limits = self.amounts("limits")
        return resource in limits and whole_number(limits[resource]) != 0


def whole_number(text: object) -> int | None:
    """None when it is a fraction, or no number."""
    try:
        quantity = parse(str(text))
    except ParseError:
        return None
    return None if quantity.nanos % NANOS else value(quantity)


def places(pod: Obj) -> Iterator[Place]:
    """All containers, in the order in which they start."""
    spec = pod["spec"]
    for key in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(key) or ()):
            yield Place(f"spec.{key}[{i}]", container)


def gpu_places(pod: Obj) -> list[Place]:
    """Containers that speak of GPUs; those that ask for 0 are shown no card of their node."""
    return [
        place
        for place in places(pod)
        if any(name in place.amounts(kind) for name in GPU_RESOURCES for kind in _KINDS)
    ]


def is_shared(place: Place) -> bool:
    return place.asks(RESOURCE_GPU_MEM)
