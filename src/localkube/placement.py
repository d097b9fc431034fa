"""What a pod demands of a node, and what a node offers: for daemon sets and for the scheduler."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubeclient.objects import Obj
from kubeclient.placement import (
    HostPort,
    NodeTerm,
    Taint,
    Toleration,
    amounts,
    host_ports,
    node_selector,
    pod_resources,
    required_nodes,
    selects_node,
    taints,
    tolerations,
)


@dataclass(frozen=True, slots=True)
class NodeOffer:
    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Mapping[str, int]  # CPU in thousandths


@dataclass(frozen=True, slots=True)
class NodeDemand:
    resources: Mapping[str, int]  # CPU in thousandths; "pods" is always 1
    node_selector: tuple[tuple[str, str], ...]
    node_terms: tuple[NodeTerm, ...] | None  # required node affinity: one of them must match
    tolerations: tuple[Toleration, ...]
    host_ports: tuple[HostPort, ...]
    node_name: str  # empty: any node

    def selects(self, node: NodeOffer) -> bool:
        return selects_node(self.node_selector, self.node_terms, node.name, node.labels)

    def untolerated(self, node: NodeOffer) -> Iterable[Taint]:
        for taint in node.taints:
            if not any(toleration.tolerates(taint) for toleration in self.tolerations):
                yield taint


def node_offer(node: Obj) -> NodeOffer:
    spec, metadata = node.get("spec") or {}, node["metadata"]
    return NodeOffer(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        taints=taints(spec),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=amounts((node.get("status") or {}).get("allocatable")),
    )


def node_demand(pod: Obj) -> NodeDemand:
    spec = pod["spec"]
    return NodeDemand(
        resources=pod_resources(pod),
        node_selector=node_selector(spec),
        node_terms=required_nodes(spec),
        tolerations=tolerations(spec),
        host_ports=tuple(host_ports(spec)),
        node_name=spec.get("nodeName", ""),
    )
