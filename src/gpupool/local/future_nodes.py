"""FutureNodes: nodes of a pool as they will be when their agents have published their cards."""

import datetime
from dataclasses import dataclass, replace

from gpupool.agent.cards import KnownCard, NodeCards
from gpupool.agent.devices import RESOURCES, device_count
from gpupool.agent.labels import card_labels
from gpupool.contract.nodes import gpu_mode, node_of
from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.hardware.driver import CardLook
from gpupool.local.config.nodes import Taken, new_nodes
from gpupool.local.config.spec import Network, PoolSpec
from kubeclient.objects import Obj
from localkube.controllers.pods import parse_time

# A new node counts as ready for this long, so that the pods it is for do not ask for another one.
_GETS_READY = datetime.timedelta(minutes=2)
_UNREADY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


@dataclass(frozen=True, slots=True)
class FutureNodes:
    network: Network
    has_cards: bool  # False: the machine's own cards belong to a node that exists

    def node(self, pool: PoolSpec) -> NodeInfo:
        """A further node of the pool."""
        (made,) = new_nodes(pool, 1, network=self.network, taken=Taken())
        return self._with_cards(node_of(made), pool)

    def settled(self, node: Obj, pool: PoolSpec, now: datetime.datetime) -> NodeInfo:
        """The node; if it was created only just now, as it will be."""
        found = node_of(node)
        if now - parse_time(node["metadata"]["creationTimestamp"]) >= _GETS_READY:
            return found
        taints = tuple(taint for taint in found.taints if taint.key not in _UNREADY)
        young = replace(found, taints=taints)
        return self._with_cards(young, pool) if found.inventory is None else young

    def _with_cards(self, node: NodeInfo, pool: PoolSpec) -> NodeInfo:
        machine = pool.instance_type
        if machine.gpu is None or not self.has_cards:
            return node
        cards = tuple(
            Card(index, f"{node.name}/{index}", machine.gpu.name, machine.gpu.memory_mib)
            for index in range(machine.gpu_count)
        )
        mode = gpu_mode(dict(node.labels))
        offered = {
            resource: sum(device_count(card, resource, mode) for card in cards)
            for resource in RESOURCES
        }
        known = (KnownCard(CardLook(c.index, c.uuid, c.model, c.memory_mib)) for c in cards)
        return replace(
            node,
            labels={**node.labels, **card_labels(NodeCards(cards=tuple(known)))},
            allocatable={**node.allocatable, **{key: n for key, n in offered.items() if n}},
            inventory=Inventory(cards),
        )
