"""Refuses a node pool that would take the cluster beyond its quota, when it is written.

The controller applies the quota again when it makes nodes: a quota may be lowered, and nodes may be
made by others.
"""

from collections.abc import Callable

from gpupool.contract.names import LABEL_POOL
from gpupool.local.config.nodepools import NODE_POOLS
from gpupool.local.config.quotas import exceeded_nodes
from gpupool.local.config.spec import Quotas
from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes, ClusterView, WriteCheck

RESOURCE = f"{NODE_POOLS.plural}.{NODE_POOLS.group}"


def pool_check(quotas: Callable[[], Quotas]) -> WriteCheck:
    def check(attributes: Attributes, view: ClusterView) -> str:
        wanted, had = _count(attributes.obj), _count(attributes.old)
        if wanted <= had:
            return ""  # even beyond the quota: it is on its way back
        pools = view.list(RESOURCE)
        others = sum(_count(p) for p in pools if p["metadata"]["name"] != attributes.name)
        nodes = view.list("nodes")
        alone = sum(LABEL_POOL not in (node["metadata"].get("labels") or {}) for node in nodes)
        over = exceeded_nodes(quotas(), existing=others + alone + had, more=wanted - had)
        return "; ".join(map(str, over))

    return check


def _count(pool: Obj | None) -> int:
    count = ((pool or {}).get("spec") or {}).get("count", 0)
    return count if isinstance(count, int) else 0  # the schema refuses all else
