"""what_if: where pods would go if nodes came or went, and what that does to pods that wait. Pure.

All pods that need a node are placed by the engine, in the order in which the scheduler would try
them: by priority; pods that wait already before pods of nodes that go, and these before new ones.
`state` is used up: afterwards its cluster is the one that was asked about.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gpupool.contract.node_pools import pool_of_labels
from gpupool.core.gpu import Allocation, CardHealth
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement
from gpupool.engine.growth import GrowingPool, Together, growth, named, shrink_again
from gpupool.engine.trial import trial
from gpupool.scheduler.beside_claims import decide_beside
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.groups import Group
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.told_room import told_room
from gpupool.scheduler.turns import (
    LEAVING,
    NEW,
    WAITING,
    Found,
    Turn,
    in_order,
    place,
    why_not,
)
from kubeclient.placement import Taint

MOST_COPIES = 10_000  # of one workload that are tried
# That are counted beyond what was asked for. On a large cluster most would fit, and to count all of
# them takes seconds.
MOST_FURTHER_COPIES = 1_000
MOST_FURTHER_NODES = 100  # that are tried as an addition
_FURTHER = "new/"  # how names of nodes begin that do not exist; no real name has a "/"
# How keys of taints begin that say how one node is, or what becomes of it.
_OF_ONE_NODE = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
)


@dataclass(frozen=True, slots=True)
class Workload:
    """New pods that are alike."""

    kind: str
    namespace: str
    name: str
    request: PodRequest
    copies: int
    group: Group | None = None
    at: int = 0  # its place in the manifest: several may have one name (generateName)

    @property
    def pods(self) -> tuple[PodRequest, ...]:
        return tuple(self.copy(number) for number in range(self.copies))

    def copy(self, number: int) -> PodRequest:
        uid = f"new/{self.at}/{self.kind}/{self.namespace}/{self.name}/{number}"
        is_itself = self.kind == "Pod" and self.copies == 1 and not number
        name = self.name if is_itself else f"{self.name}-{number}"
        return replace(self.request, uid=uid, name=name)


class Leaver(NamedTuple):
    """A pod of a node that goes."""

    request: PodRequest
    was_on: str
    comes_back: bool  # a controller makes it again


@dataclass(frozen=True, slots=True)
class Question:
    workloads: Sequence[Workload] = ()
    without: Set[str] = frozenset()  # nodes that go
    more: Mapping[str, int] = field(default_factory=dict)  # nodes that come, by pool
    # Pods that exist only as long as their node, by uid, and pods that no controller makes again.
    bound_to_node: Set[str] = frozenset()
    alone: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of the pods of one new workload."""

    workload: Workload
    placed: tuple[Placement, ...]
    more: int  # further copies that would fit, too; MOST_FURTHER_COPIES: at least so many
    why: str = ""  # the next copy does not fit


@dataclass(frozen=True, slots=True)
class PodFate:
    namespace: str
    name: str
    node: str = ""  # empty: it waits
    was_on: str = ""
    is_lost: bool = False  # nobody makes it again
    why: str = ""


@dataclass(frozen=True, slots=True)
class Addition:
    pool: str
    nodes: int


@dataclass(frozen=True, slots=True)
class Answer:
    fates: tuple[Fate, ...]
    waiting: tuple[PodFate, ...]  # pods that wait now
    moved: tuple[PodFate, ...]  # pods of nodes that go
    # Waiting pods that would start if it were not for the new ones.
    displaced: tuple[str, ...] = ()
    # The cheapest nodes with which all new pods fit; empty: none, or not needed.
    additions: tuple[Addition, ...] = ()

    @property
    def all_fit(self) -> bool:
        return all(len(fate.placed) == fate.workload.copies for fate in self.fates)


class UnknownPool(ValueError):
    """No node is there that could show what a further one would be like."""


def what_if(state: ClusterState, question: Question) -> Answer:
    """Raises UnknownPool."""
    cluster = state.cluster
    pools = node_kinds(cluster)
    for pool, count in question.more.items():
        if pool not in pools:
            raise UnknownPool(pool)
        for number in range(count):
            cluster.set_node(named(pools[pool], f"{_FURTHER}{pool}/{number}"))
    leavers = list(_leavers(cluster, question))
    waiting = _waiting(state)
    back = [Turn((leaver.request,), 1, LEAVING) for leaver in leavers if leaver.comes_back]
    with told_room(state):
        before = _starting_without_new(state, [*waiting, *back], question)
    turns = [*waiting, *back, *_new_turns(question.workloads)]
    with told_room(state):
        found = place(state, sorted(turns, key=in_order))
        fates = tuple(_fate(state, workload, found) for workload in question.workloads)
        additions = _cheapest(state, pools, _without_room(question.workloads, found))
    asked = [pod for turn in waiting for pod in turn.pods]
    return Answer(
        fates,
        tuple(_pod_fate(pod, found) for pod in asked),
        tuple(
            replace(
                _pod_fate(leaver.request, found),
                was_on=leaver.was_on,
                is_lost=not leaver.comes_back,
            )
            for leaver in leavers
        ),
        tuple(
            f"{pod.namespace}/{pod.name}"
            for pod in asked
            if pod.uid in before and pod.uid not in found.placed
        ),
        additions,
    )


# -- nodes that come and go ---------------------------------------------------------------


def further_node(name: str) -> tuple[str, int] | None:
    """Pool and number of a node that was added to answer the question; None: it exists."""
    if not name.startswith(_FURTHER):
        return None
    pool, _, number = name.removeprefix(_FURTHER).rpartition("/")
    return pool, int(number)


def node_kinds(cluster: ClusterModel) -> dict[str, NodeInfo]:
    """By pool: a node as a further one would be. Nodes of no pool are kinds of their own."""
    found: dict[str, NodeInfo] = {}
    for index in cluster.all_nodes():
        node = cluster.at(int(index)).node
        pool = pool_of_labels(node.labels) or node.name
        if pool not in found or _wellness(node) > _wellness(found[pool]):
            found[pool] = node
    return {pool: _as_new(node) for pool, node in found.items()}


def _wellness(node: NodeInfo) -> tuple[bool, bool, bool]:
    """What a node offers that is not well is less than what a further one would."""
    cards = node.inventory.cards if node.inventory else ()
    is_well = not node.unschedulable and not any(map(_is_of_one_node, node.taints))
    return bool(cards), all(card.health is CardHealth.HEALTHY for card in cards), is_well


def _is_of_one_node(taint: Taint) -> bool:
    return taint.key.startswith(_OF_ONE_NODE)


def _as_new(node: NodeInfo) -> NodeInfo:
    inventory = node.inventory
    if inventory is not None:
        cards = tuple(
            replace(card, health=CardHealth.HEALTHY, reason="", outside_mib=0)
            for card in inventory.cards
        )
        inventory = replace(inventory, cards=cards, other_walls=())
    taints = tuple(taint for taint in node.taints if not _is_of_one_node(taint))
    return replace(node, inventory=inventory, taints=taints, unschedulable=False)


def _leavers(cluster: ClusterModel, question: Question) -> Iterator[Leaver]:
    for name in sorted(question.without):
        state = cluster.state(name)
        held = list(state.pods.values()) if state else []
        cluster.remove_node(name)
        for each in held:
            cluster.release(each.pod.uid)
            if each.pod.uid not in question.bound_to_node:
                pod = replace(each.pod, terminating=False, preempted=False)
                yield Leaver(pod, name, comes_back=each.pod.uid not in question.alone)


# -- pods in the order in which the scheduler tries them --------------------------------------


def _waiting(state: ClusterState) -> list[Turn]:
    groups: dict[object, list[Pending]] = {}
    for pod in sorted(state.pending.values(), key=lambda pod: pod.created):
        together = pod.group is not None and state.groups.missing(pod.group) > 0
        groups.setdefault(pod.group.key if together and pod.group else pod.uid, []).append(pod)
    found = []
    for members in groups.values():
        group = members[0].group
        least = max(1, state.groups.missing(group)) if group is not None else 1
        requests = tuple(pod.request for pod in members)
        found.append(Turn(requests, least, WAITING, members[0].created))
    return found


def _new_turns(workloads: Sequence[Workload]) -> list[Turn]:
    """Workloads of one group start together."""
    groups: dict[object, list[Workload]] = {}
    for at, workload in enumerate(workloads):
        groups.setdefault(workload.group.key if workload.group else at, []).append(workload)
    return [
        Turn(
            tuple(pod for workload in members for pod in workload.pods),
            max(each.group.least if each.group else 1 for each in members),
            NEW,
        )
        for members in groups.values()
    ]


def _starting_without_new(
    state: ClusterState, turns: Sequence[Turn], question: Question
) -> frozenset[str]:
    """Pods that would start if nothing new came. Only needed where new pods can go before them."""
    highest = max((each.request.priority for each in question.workloads), default=None)
    if highest is None or all(-in_order(turn)[0] >= highest for turn in turns):
        return frozenset()
    found = place(state, sorted(turns, key=in_order))
    for uid in found.placed:
        state.cluster.release(uid)
    return frozenset(found.placed)


# -- what is told about them -------------------------------------------------------------------


def _fate(state: ClusterState, workload: Workload, found: Found) -> Fate:
    uids = [pod.uid for pod in workload.pods]
    placed = tuple(found.placed[uid] for uid in uids if uid in found.placed)
    why = next((found.why[uid] for uid in uids if uid in found.why), "")
    if len(placed) < workload.copies:
        return Fate(workload, placed, 0, why)
    more = 0
    with trial(state.cluster) as trying:
        while more < MOST_FURTHER_COPIES:
            pod = workload.copy(workload.copies + more)
            decision = decide_beside(state, pod)
            if not isinstance(decision, Placement):
                why = why_not(state, decision)
                break
            trying.hold(pod, decision.node, decision.allocation)
            more += 1
    return Fate(workload, placed, more, why)


def _pod_fate(pod: PodRequest, found: Found) -> PodFate:
    placement = found.placed.get(pod.uid, Placement("", Allocation()))
    return PodFate(pod.namespace, pod.name, placement.node, why=found.why.get(pod.uid, ""))


def _without_room(workloads: Sequence[Workload], found: Found) -> list[Together]:
    missing = []
    for workload in workloads:
        left = tuple(pod for pod in workload.pods if pod.uid not in found.placed)
        if left:
            # All of them: the answer promises that all fit.
            missing.append(Together(left, len(left)))
    return missing


def _cheapest(
    state: ClusterState, pools: Mapping[str, NodeInfo], missing: Sequence[Together]
) -> tuple[Addition, ...]:
    """Further nodes of one pool, with the smallest sum of cards; else of several pools, each the
    smallest that takes a pod."""
    if not missing:
        return ()
    growing = [GrowingPool(name, node, MOST_FURTHER_NODES) for name, node in pools.items()]
    best: tuple[tuple[int, ...], tuple[Addition, ...]] | None = None
    for pool in growing:
        if best is not None and pool.size >= best[0]:
            continue  # one of them is as much as all that was found before
        added = _added(state, [pool], missing)
        cost = tuple(part * sum(each.nodes for each in added) for part in pool.size)
        if added and (best is None or cost < best[0]):
            best = cost, added
    return best[1] if best else _added(state, growing, missing)


def _added(
    state: ClusterState, pools: Sequence[GrowingPool], missing: Sequence[Together]
) -> tuple[Addition, ...]:
    """Nodes of these pools with which all of them fit; empty: there are none."""
    grown = growth(pools, state.cluster, missing, state.policy, MOST_FURTHER_NODES)
    shrink_again(state.cluster, grown)
    if len(grown.placed) < sum(len(together.pods) for together in missing):
        return ()
    return tuple(Addition(pool, count) for pool, count in sorted(grown.further.items()) if count)
