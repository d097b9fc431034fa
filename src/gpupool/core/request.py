"""What a pod asks for and what a node offers, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpupool.core.gpu import CardPlacement, GpuAsk, GpuMode, Inventory
from gpupool.core.selectors import LabelSelector, integer


class Effect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str  # empty: every key
    exists: bool  # any value will do
    value: str
    effect: str  # empty: every effect

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.exists or (bool(self.key) and self.value == taint.value)


class NodeOperator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    key: str
    operator: NodeOperator
    values: tuple[str, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case NodeOperator.IN:
                return found in self.values
            case NodeOperator.NOT_IN:
                return found not in self.values
            case NodeOperator.EXISTS:
                return found is not None
            case NodeOperator.DOES_NOT_EXIST:
                return found is None
            case NodeOperator.GREATER | NodeOperator.LESS:
                return self._compares(found)

    def _compares(self, found: str | None) -> bool:
        left, right = integer(found), integer(self.values[0] if self.values else None)
        if left is None or right is None:
            return False
        return left > right if self.operator is NodeOperator.GREATER else left < right


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """All of it must hold; an empty term matches no node, as in Kubernetes."""

    labels: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()  # metadata.name is the only one there is

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if not self.labels and not self.fields:
            return False
        return all(r.matches(labels) for r in self.labels) and all(
            r.matches({"metadata.name": name}) for r in self.fields
        )


@dataclass(frozen=True, slots=True)
class HostPort:
    ip: str  # "0.0.0.0": every address
    protocol: str
    port: int

    def collides(self, other: "HostPort") -> bool:
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or "0.0.0.0" in (self.ip, other.ip)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Pods that are looked for, and the node label whose value says what counts as near them."""

    selector: LabelSelector
    topology_key: str
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None  # these namespaces as well


@dataclass(frozen=True, slots=True)
class Spread:
    """How uneven the pods that `selector` finds may be spread over the values of a node label."""

    topology_key: str
    selector: LabelSelector
    max_skew: int
    required: bool
    min_domains: int = 1
    # Whether nodes that the pod cannot use anyway are left out of the count.
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodRequest:
    uid: str
    namespace: str
    name: str
    # CPU in thousandths, all else in whole units; "pods" is always 1.
    resources: Mapping[str, int]
    node_selector: tuple[tuple[str, str], ...] = ()
    node_terms: tuple[NodeTerm, ...] | None = None  # required node affinity: any of them
    preferred: tuple[tuple[int, NodeTerm], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    node_name: str = ""
    # Constraints that nobody here evaluates: such a pod is refused, never misplaced.
    unsupported: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    priority_class: str = ""
    has_deadline: bool = False  # ends by itself after a while
    may_preempt: bool = True
    terminating: bool = False
    started: str = ""  # when, as RFC 3339 in UTC, which sorts as text; empty: not yet
    affinity: tuple[PodTerm, ...] = ()  # required, all of them
    anti_affinity: tuple[PodTerm, ...] = ()  # required, all of them
    near: tuple[tuple[int, PodTerm], ...] = ()  # preferred by weight; away from, if negative
    spreads: tuple[Spread, ...] = ()
    volume_terms: tuple[tuple[NodeTerm, ...], ...] = ()  # of each volume, any of its terms
    waits_for: str = ""  # something that must come first, whatever the nodes are like
    gpus: tuple[GpuAsk, ...] = ()
    card_placement: CardPlacement | None = None  # None: as the node and the policy have it
    # Pods of one namespace with the same word share a card, or never do.
    same_card: str = ""
    different_card: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Mapping[str, int] = field(default_factory=dict)
    inventory: Inventory | None = None  # None: no agent has said what cards there are
    gpu_mode: GpuMode = GpuMode.ANY
    card_placement: CardPlacement | None = None
    isolates: bool = True  # whether shares are held to their limit
    grants_unisolated: bool = False  # whether a container may ask to run without


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """Of the pods that `selector` finds, so many more may be disturbed."""

    namespace: str
    selector: LabelSelector
    allowed: int


def selects_node(pod: PodRequest, node: Node) -> bool:
    """Whether the pod's node selector and required node affinity let it go there."""
    if any(node.labels.get(key) != value for key, value in pod.node_selector):
        return False
    if pod.node_terms is None:
        return True
    return any(term.matches(node.name, node.labels) for term in pod.node_terms)
