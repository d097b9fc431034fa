"""What the containers of a pod ask for, in the order in which a kubelet serves them. Pure."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kubeclient.objects import Obj
from kubeclient.placement import amounts


class DeviceRequest(NamedTuple):
    container: str
    limits: Mapping[str, int]
    gives_back: bool  # an init container: those after it may have its devices


def device_requests(obj: Obj) -> Iterator[DeviceRequest]:
    """Init containers first. Only limits count: for such resources, requests are the same."""
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
