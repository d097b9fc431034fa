"""What the containers of a pod ask of GPUs, as the user wrote it: not yet checked."""

from collections.abc import Iterator
from decimal import Decimal
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
    """A container, and its field in the pod."""

    field: str  # spec.containers[0]
    spec: Obj  # as in the pod

    def amounts(self, kind: str) -> Obj:
        """Its `limits` or `requests`."""
        return (self.spec.get("resources") or {}).get(kind) or {}

    def asks(self, resource: str) -> bool:
        """Whether it asks for more than 0: templates write 0 for a container without GPUs."""
        limits = self.amounts("limits")
        # An amount that is no whole number counts as asked for; `complaints` then refuses it.
        return resource in limits and whole_number(limits[resource]) != 0


def whole_number(text: object) -> int | None:
    """The quantity as a whole number; None when it is a fraction or not a quantity."""
    try:
        quantity = parse(str(text))
    except ParseError:
        return None
    return None if quantity.nanos % NANOS else value(quantity)


def decimal(text: object) -> str:
    """The amount as people write it: the API server has made 1500m of 1.5."""
    try:
        return f"{Decimal(parse(str(text)).nanos).scaleb(-9).normalize():f}"
    except ParseError:
        return str(text)


def containers(pod: Obj) -> Iterator[PodContainer]:
    """The containers that may ask for GPUs, in the order in which they start."""
    return _listed(pod, ("initContainers", "containers"))


def all_containers(pod: Obj) -> Iterator[PodContainer]:
    """Also those that were added to a pod that runs. Kubernetes gives these no resources."""
    return _listed(pod, ("initContainers", "containers", "ephemeralContainers"))


def _listed(pod: Obj, keys: tuple[str, ...]) -> Iterator[PodContainer]:
    for key in keys:
        for i, container in enumerate(pod["spec"].get(key) or ()):
            yield PodContainer(f"spec.{key}[{i}]", container)


def gpu_containers(pod: Obj) -> list[PodContainer]:
    """Containers with a GPU resource, even with 0 of it: those must be made to see no card."""
    return [
        container
        for container in containers(pod)
        if any(name in container.amounts(kind) for name in GPU_RESOURCES for kind in _KINDS)
    ]


def is_shared(container: PodContainer) -> bool:
    return container.asks(RESOURCE_GPU_MEM)
