"""One node: what it offers, what its pods take, and which pod addresses are free. No I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from kubeclient import names as kube_names
from kubeclient.objects import Obj
from kubeclient.placement import HostPort, amounts
from localkube.kubelet.state import Problem
from localkube.names import Names

# The order in which a node names the resource that is short; others follow by name.
_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")
# Kubernetes' own resources have no domain, or this one. Others count only on nodes that have them.
_OWN_DOMAIN = "kubernetes.io/"


def _ipv4(network: str) -> IPv4Network | None:
    """None: an IPv6 network, whose addresses no pod gets here."""
    try:
        return IPv4Network(network, strict=False) if network else None
    except AddressValueError:
        return None


class PodAddresses:
    """Hands out the addresses of a node's pod network, in turn, each to one pod at a time."""

    def __init__(self, network: str) -> None:
        self._network = _ipv4(network)
        self._taken: set[int] = set()
        self._next = 0

    def take(self) -> str:
        """Empty when no address is left, which the node's limit of pods prevents."""
        if self._network is None:
            return ""
        room = self._network.num_addresses - 3  # network, gateway, broadcast
        for step in range(max(0, room)):
            offset = 2 + (self._next + step) % room
            if offset not in self._taken:
                self._taken.add(offset)
                self._next = offset - 1
                return str(self._network.network_address + offset)
        return ""

    def keep(self, address: str) -> None:
        """A pod from before a restart has this address."""
        if (offset := self._offset(address)) is not None:
            self._taken.add(offset)

    def give_back(self, address: str) -> None:
        if (offset := self._offset(address)) is not None:
            self._taken.discard(offset)

    def _offset(self, address: str) -> int | None:
        if self._network is None or not address:
            return None
        try:
            offset = int(IPv4Address(address)) - int(self._network.network_address)
        except AddressValueError:  # whoever may write the status of pods has written another one
            return None
        return offset if 0 <= offset < self._network.num_addresses else None


@dataclass(slots=True)
class LocalNode:
    name: str
    uid: str
    ip: str
    allocatable: Mapping[str, int]
    addresses: PodAddresses
    instance_type: str = ""
    runtime: str = ""  # of its pods, if an annotation names one
    stopped: bool = False  # simulates a dead kubelet: no heartbeats, no changes of pods
    used: dict[str, int] = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)  # uids
    host_ports: dict[str, tuple[HostPort, ...]] = field(default_factory=dict)  # by pod's uid

    def take(self, requests: Mapping[str, int]) -> None:
        for name, amount in requests.items():
            self.used[name] = self.used.get(name, 0) + amount

    def give_back(self, requests: Mapping[str, int]) -> None:
        for name, amount in requests.items():
            self.used[name] -= amount


def node_from(obj: Obj, names: Names) -> LocalNode:
    node = LocalNode(
        name=obj["metadata"]["name"],
        uid=obj["metadata"]["uid"],
        ip="",
        allocatable={},
        addresses=PodAddresses((obj.get("spec") or {}).get("podCIDR") or ""),
        instance_type=obj["metadata"]["labels"].get(kube_names.LABEL_INSTANCE_TYPE, ""),
    )
    refresh(node, obj, names)
    return node


def refresh(node: LocalNode, obj: Obj, names: Names) -> None:
    """Updates what may change while the node lives."""
    status = obj.get("status") or {}
    annotations = obj["metadata"].get("annotations") or {}
    node.ip = next(
        (a["address"] for a in status.get("addresses") or () if a["type"] == "InternalIP"),
        "127.0.0.1",
    )
    node.allocatable = amounts(status.get("allocatable"))
    node.runtime = annotations.get(names.runtime_annotation, "")
    node.stopped = annotations.get(names.kubelet_annotation) == "stopped"


def port_refusal(node: LocalNode, wanted: Iterable[HostPort]) -> Problem | None:
    """Why a pod with these host ports may not run on the node, in the kubelet's words."""
    taken = [port for ports in node.host_ports.values() for port in ports]
    if any(port.collides(other) for port in wanted for other in taken):
        return Problem(
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod "
            "ports",
        )
    return None


def refusal(node: LocalNode, requests: Mapping[str, int]) -> Problem | None:
    """Why a pod with these requests may not run on the node, in the kubelet's words."""
    short = [name for name in requests if _is_short(node, name, requests[name])]
    if not short:
        return None
    first = min(short, key=lambda name: (_rank(name), name))
    return Problem(
        f"OutOf{first}",
        f"Node didn't have enough resource: {first}, requested: {requests[first]}, "
        f"used: {node.used.get(first, 0)}, capacity: {node.allocatable.get(first, 0)}",
    )


def _is_short(node: LocalNode, name: str, wanted: int) -> bool:
    if not wanted:
        return False
    if name not in node.allocatable and "/" in name and not name.startswith(_OWN_DOMAIN):
        return False  # not a resource of nodes: somebody manages it for the whole cluster
    return node.used.get(name, 0) + wanted > node.allocatable.get(name, 0)


def _rank(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)
