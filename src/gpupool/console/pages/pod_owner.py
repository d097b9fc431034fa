"""Whose a pod is, as a link to that page."""

from collections.abc import Mapping

from gpupool.console.parts.cells import Link, Text
from gpupool.console.rights import Denied
from gpupool.console.rows.pods import PodRow
from gpupool.console.visit import Visit
from kubeclient.errors import KubeError
from kubeclient.resources import REPLICA_SETS

# The pages of workloads, by kind.
_PAGES: Mapping[str, str] = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
}


async def owner_cell(visit: Visit, row: PodRow) -> Link | Text:
    kind, _, name = row.owner.partition(" ")
    if kind == "ReplicaSet":
        kind, name = await _above(visit, row.namespace, name)
    if kind == "Node":
        return Link(f"{kind} {name}", visit.link("nodes", name))
    if kind not in _PAGES:
        return Text(row.owner or "–")
    return Link(f"{kind} {name}", visit.link(_PAGES[kind], row.namespace, name))


async def _above(visit: Visit, namespace: str, name: str) -> tuple[str, str]:
    """Kind and name of what has made the ReplicaSet: it has no page of its own, and is not what
    people have written."""
    try:
        found = (await visit.watch(REPLICA_SETS, namespace)).mirror.get(name, namespace)
    except (Denied, KubeError):
        found = None
    for each in ((found or {}).get("metadata") or {}).get("ownerReferences") or ():
        if each.get("controller"):
            return str(each.get("kind") or ""), str(each.get("name") or "")
    return "ReplicaSet", name
