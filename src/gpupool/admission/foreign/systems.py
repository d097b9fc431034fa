"""The systems whose words we understand, and how to see that one of them runs in the cluster.

Where a system runs, its words are meant for it, and admission leaves them alone.
"""

from collections.abc import Iterable, Set
from enum import StrEnum

from kubeclient.objects import Obj


class System(StrEnum):
    HAMI = "HAMi"
    VOLCANO = "volcano-vgpu"
    KAI = "KAI"
    FRACTIONING = "gpu-fractioning"
    ACK = "ACK"


ALL = frozenset(System)
AUTO, EVERY, NONE = "auto", "all", "none"
SETTINGS = (AUTO, EVERY, NONE)

# Values of spec.schedulerName that mean the system's own scheduler.
SCHEDULERS = {
    System.HAMI: ("hami-scheduler",),
    System.VOLCANO: ("volcano",),
    System.KAI: ("kai-scheduler", "runai-scheduler"),
}
_API_GROUPS = {
    "scheduling.volcano.sh": System.VOLCANO,
    "scheduling.run.ai": System.KAI,
    "gpu-fractioning.kai.scheduler": System.FRACTIONING,
}
# Beginnings of annotations, and resources, that a system's agents put on their nodes.
_NODE_ANNOTATIONS = {
    "hami.io/node-": System.HAMI,
    "volcano.sh/node-vgpu-": System.VOLCANO,
}
_NODE_RESOURCES = {
    "nvidia.com/gpumem": System.HAMI,
    "nvidia.com/gpucores": System.HAMI,
    "volcano.sh/vgpu-number": System.VOLCANO,
    "volcano.sh/vgpu-memory": System.VOLCANO,
    "aliyun.com/gpu": System.ACK,
    "aliyun.com/gpu-core.tflops": System.ACK,
}


def understood(setting: str, running: Set[System]) -> frozenset[System]:
    """The systems whose words admission translates. `setting`: one of SETTINGS."""
    if setting == NONE:
        return frozenset()
    return ALL if setting == EVERY else ALL - running


def of_node(node: Obj) -> frozenset[System]:
    """The systems that run on this node."""
    annotations = node["metadata"].get("annotations") or {}
    status = node.get("status") or {}
    offered = {**(status.get("capacity") or {}), **(status.get("allocatable") or {})}
    by_annotation = (
        system
        for start, system in _NODE_ANNOTATIONS.items()
        if any(key.startswith(start) for key in annotations)
    )
    # A kubelet keeps the names of device plugins that are gone, with 0 of each.
    by_resource = (
        system for name, system in _NODE_RESOURCES.items() if str(offered.get(name, "0")) != "0"
    )
    return frozenset([*by_annotation, *by_resource])


def of_api_groups(names: Iterable[str]) -> frozenset[System]:
    """The systems whose own kinds the API server serves."""
    return frozenset(_API_GROUPS[name] for name in names if name in _API_GROUPS)
