"""What a pod asks for, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpupool.core.gpu import CardPlacement, GpuAsk
from kubeclient.placement import HostPort, NodeTerm, Toleration
from kubeclient.selectors import LabelSelector


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
class DisruptionBudget:
    """Of the pods that `selector` finds, so many more may be disturbed."""

    namespace: str
    selector: LabelSelector
    allowed: int
