"""PodRequest: what a pod asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import CardPlacement, GpuAsk
from kubeclient.placement import HostPort, NodeTerm, Toleration
from kubeclient.selectors import LabelSelector


@dataclass(frozen=True, slots=True)
class PodTerm:
    """An affinity term: a selector of pods, and the node label that makes up domains."""

    selector: LabelSelector
    topology_key: str
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None  # these namespaces as well


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint."""

    topology_key: str
    selector: LabelSelector
    max_skew: int
    required: bool
    min_domains: int = 1
    # Whether nodes that the pod cannot use are left out of the count.
    honors_affinity: bool = True
    honors_taints: bool = False


class AttachedVolume(NamedTuple):
    """A volume that is attached to the node, once for all pods that use it."""

    driver: str
    handle: str


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
    runtime_class: str = ""
    # Constraints that this scheduler does not support: the pod stays pending.
    unsupported: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    priority_class: str = ""
    has_deadline: bool = False  # has activeDeadlineSeconds
    may_preempt: bool = True
    terminating: bool = False
    preempted: bool = False  # is terminating because a scheduler evicted it for another pod
    grace_s: int = 30  # how long it may take to terminate
    started: str = ""  # RFC 3339 in UTC; empty: not started
    affinity: tuple[PodTerm, ...] = ()  # required, all of them
    anti_affinity: tuple[PodTerm, ...] = ()  # required, all of them
    near: tuple[tuple[int, PodTerm], ...] = ()  # preferred, by weight; negative: anti-affinity
    spreads: tuple[Spread, ...] = ()
    volume_terms: tuple[tuple[NodeTerm, ...], ...] = ()  # one term of each volume must match
    volume_zones: tuple[tuple[NodeTerm, ...], ...] = ()  # and one of each zone label of a volume
    attached: tuple[AttachedVolume, ...] = ()  # those that a node may have too many of
    waits_for: str = ""  # what must exist first (a volume claim): until then no node fits
    gpus: tuple[GpuAsk, ...] = ()
    card_placement: CardPlacement | None = None  # None: by the node's label or the policy
    # Pods of one namespace with the same value share a card, or never share one.
    same_card: str = ""
    different_card: str = ""
    card_choice: CardChoice | None = None  # None: any card


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many more of the pods that `selector` matches may be evicted."""

    namespace: str
    selector: LabelSelector
    allowed: int

    def covers(self, pod: PodRequest) -> bool:
        return self.namespace == pod.namespace and self.selector.matches(pod.labels)
