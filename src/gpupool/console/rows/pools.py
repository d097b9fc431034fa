"""A node pool as lists show it."""

from dataclasses import dataclass

from gpupool.contract.names import (
    API_GROUP,
    API_VERSION,
    NODE_POOL_KIND,
    NODE_POOL_PLURAL,
)
from kubeclient.objects import Obj
from kubeclient.resources import Resource

NODE_POOLS = Resource(API_GROUP, API_VERSION, NODE_POOL_PLURAL, NODE_POOL_KIND, namespaced=False)


@dataclass(frozen=True, slots=True)
class PoolRow:
    name: str
    phase: str  # Initializing, Active, Failed; empty: a pool that is only a label of nodes
    why: str  # it is not active
    instance_type: str
    os: str
    wanted: int
    nodes: int
    ready: int
    labels: tuple[tuple[str, str], ...]
    scaling: str  # "1-8"; empty: the number of nodes is fixed
    is_managed: bool
    created: str


def pool_row(pool: Obj) -> PoolRow:
    metadata, spec, status = pool["metadata"], pool.get("spec") or {}, pool.get("status") or {}
    conditions = status.get("conditions") or ()
    ready: Obj = next((each for each in conditions if each.get("type") == "Ready"), {})
    is_active = status.get("phase") == "Active"
    scaling = spec.get("autoscaling") or {}
    return PoolRow(
        name=metadata["name"],
        phase=str(status.get("phase") or "Initializing"),
        why="" if is_active else str(ready.get("message") or ""),
        instance_type=str(spec.get("instanceType") or ""),
        os=str(spec.get("os") or "CentOS 7.x"),
        wanted=int(spec.get("count", 1)),
        nodes=int(status.get("nodes") or 0),
        ready=int(status.get("readyNodes") or 0),
        labels=tuple(sorted((spec.get("labels") or {}).items())),
        scaling=f"{scaling.get('min', 0)}–{scaling.get('max', '')}" if scaling else "",
        is_managed=bool(spec.get("managed")),
        created=metadata.get("creationTimestamp") or "",
    )
