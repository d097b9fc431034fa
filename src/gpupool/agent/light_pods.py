"""Pods without what the audits do not read. Pure.

A node has a hundred pods, and Python does not give the memory of a hundred parsed ones back to the
node. So whoever looks at all of them keeps a light one of each.
"""

from collections.abc import Iterable, Iterator, Mapping

from gpupool.agent.owners import STATUSES
from gpupool.contract.names import ANNOTATION_ALLOCATION, GROUP_LIMITS
from kubeclient.objects import Obj

_METADATA = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
_CONTAINER = ("name", "containerID", "state", "lastState")


def light(pods: Iterable[Obj]) -> Iterator[Obj]:
    """With names, allocation and limits, runtime class, and the states of their containers."""
    return map(_light, pods)


def _light(pod: Obj) -> Obj:
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
