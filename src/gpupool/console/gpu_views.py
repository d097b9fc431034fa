"""GpuViews: the nodes with cards as pages show them, kept up to date.

After a change of the cluster only the nodes that have changed are made again: a pod that comes or
goes costs the same on 5,000 nodes as on five.
"""

import secrets
from collections.abc import Iterable

from gpupool.console.gpus import NodeView, Overview, Totals, node_view, totals_of
from gpupool.engine.cluster import ClusterModel


class GpuViews:
    def __init__(self, cluster: ClusterModel) -> None:
        self._cluster = cluster
        self._views: dict[int, NodeView] = {}  # by the index of the node in the model
        self._now: Overview | None = None
        self._epoch = secrets.token_hex(4)

    def now(self) -> Overview:
        known, version = self._now, self._cluster.version
        if known is not None and known.version == version:
            return known
        changed = None if known is None else self._cluster.changes.since(known.version)
        if known is None or changed is None:
            self._views, known = {}, Overview((), Totals(), epoch=self._epoch)
            changed = [int(index) for index in self._cluster.all_nodes()]
        self._now = self._after(known, set(changed), version)
        return self._now

    def _after(self, known: Overview, changed: Iterable[int], version: int) -> Overview:
        present = {int(index) for index in self._cluster.all_nodes()}
        totals, shape = known.totals, known.shape
        for index in changed:
            old, new = self._views.pop(index, None), self._made(index, present, version)
            if old is not None:
                totals -= totals_of(old)
            if new is not None:
                self._views[index] = new
                totals += totals_of(new)
            if (old and old.name) != (new and new.name):
                shape = version
        nodes = sorted(self._views.values(), key=lambda node: node.name)
        return Overview(tuple(nodes), totals, version, shape, known.epoch)

    def _made(self, index: int, present: set[int], version: int) -> NodeView | None:
        """None: there is no such node any more, or it has no cards."""
        if index not in present:
            return None
        state = self._cluster.at(index)
        return node_view(state, version) if state.cards else None


def overview(cluster: ClusterModel) -> Overview:
    """Once, without keeping anything."""
    return GpuViews(cluster).now()
