"""Neighbours: which other systems for GPUs run in the cluster, kept up to date."""

import logging
from collections.abc import Set

from gpupool.admission.foreign.systems import AUTO, System, of_api_groups, of_node, understood
from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj

log = logging.getLogger(__name__)


class Neighbours:
    def __init__(self, nodes: Mirror, setting: str = AUTO) -> None:
        self._setting = setting
        self._by_node: dict[str, frozenset[System]] = {}  # without nodes that have none
        self._by_group: frozenset[System] = frozenset()
        nodes.on_change(self._take)

    def _take(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None:
            self._by_node.pop(old["metadata"]["name"], None)
        if new is not None and (found := of_node(new)):
            self._by_node[new["metadata"]["name"]] = found

    async def look(self, kube: Kube) -> None:
        """Asks which kinds the API server has, which every user may. Raises KubeError."""
        try:
            groups = (await kube.page("/apis")).get("groups") or ()
        except Refused as refused:
            log.warning("cannot see which systems are installed", extra={"error": str(refused)})
            return
        self._by_group = of_api_groups(str(group.get("name")) for group in groups)

    def running(self) -> Set[System]:
        return self._by_group.union(*self._by_node.values())

    def understood(self) -> frozenset[System]:
        """Those whose words admission translates."""
        return understood(self._setting, self.running())
