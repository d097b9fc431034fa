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


class PodContainer(NamedTuple):
    """A container, and where in the pod it stands."""

    field: str  # spec.containers[0]
    spec: Obj  # as in the pod

    def amounts(self, kind: str) -> Obj:
        """Its `limits` or `requests`."""
        return (self.spec.get("resources") or {}).get(kind) or {}

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


def containers(pod: Obj) -> Iterator[PodContainer]:
    """All containers, in the order in which they start."""
    spec = pod["spec"]
    for key in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(key) or ()):
            yield PodContainer(f"spec.{key}[{i}]", container)


def gpu_containers(pod: Obj) -> list[PodContainer]:
    """Containers that speak of GPUs; those that ask for 0 are shown no card of their node."""
    return [
        container
        for container in containers(pod)
        if any(name in container.amounts(kind) for name in GPU_RESOURCES for kind in _KINDS)
    ]


def is_shared(container: PodContainer) -> bool:
    return container.asks(RESOURCE_GPU_MEM)
