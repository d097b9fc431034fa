"""Node object -> core Node."""

from gpupool.contract.objects import Obj
from gpupool.contract.pods import amounts
from gpupool.core.request import Node, Taint


def node_of(node: Obj) -> Node:
    spec = node.get("spec") or {}
    return Node(
        name=node["metadata"]["name"],
        labels=node["metadata"].get("labels") or {},
        taints=tuple(
            Taint(taint["key"], taint.get("value", ""), taint["effect"])
            for taint in spec.get("taints") or ()
        ),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=amounts((node.get("status") or {}).get("allocatable")),
    )
