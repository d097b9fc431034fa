"""Pods without what the audits do not read.

A node has a hundred pods, and Python does not give the memory of a hundred parsed ones back to the
node. And to parse them every few seconds costs more than all else that the agent does at rest. So
those who look at all of them share a light one of each, made when the pod changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from gpupool.agent.owners import STATUSES
from gpupool.contract.names import ANNOTATION_ALLOCATION, GROUP_LIMITS
from kubeclient.mirror import Key, Mirror, key_of
from kubeclient.objects import Obj

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
)
_CONTAINER = ("name", "containerID", "state", "lastState")


class LightPods:
    """Those of a mirror. Nobody changes them."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._pods: dict[Key, Obj] = {}
        mirror.on_change(self._changed)

    def __iter__(self) -> Iterator[Obj]:
        # A copy: a reader may await between two pods.
        return iter(list(self._pods.values()))

    def on_change(self, told: Callable[[], None]) -> None:
        """Called with every change from now on; `__iter__` shows it already."""
        self._mirror.on_change(lambda old, new: told())

    async def wait_synced(self) -> None:
        await self._mirror.wait_synced()

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self._pods[key_of(new)] = light(new)
        elif old is not None:
            self._pods.pop(key_of(old), None)


def light(pod: Obj) -> Obj:
    """With names, allocation and limits, runtime class, and the states of its containers."""
    metadata = _some(pod["metadata"], _METADATA)
    annotations = pod["metadata"].get("annotations") or {}
    limits = (key for key in annotations if key.startswith(f"{GROUP_LIMITS}/"))
    metadata["annotations"] = _some(annotations, (ANNOTATION_ALLOCATION, *limits))
    status = pod.get("status") or {}
    containers = {
        key: [_some(each, _CONTAINER) for each in status[key]]
        for key in STATUSES
        if status.get(key)
    }
    return {
        "metadata": metadata,
        "spec": _some(pod["spec"], ("runtimeClassName",)),
        "status": _some(status, ("phase",)) | containers,
    }


def _some(values: Mapping[str, object], names: Iterable[str]) -> Obj:
    return {name: values[name] for name in names if name in values}
