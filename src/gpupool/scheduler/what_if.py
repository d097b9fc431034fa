"""what_if: where pods would go if nodes came or went, and what that does to pods that wait. Pure.

All pods that need a node are placed by the engine, in the order in which the scheduler would try
them: by priority; pods that wait already before pods of nodes that go, and these before new ones.
`state` is used up: afterwards its cluster is the one that was asked about.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gpupool.contract.node_pools import pool_of_labels
from gpupool.core.gpu import Allocation, CardHealth
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.card_words import card_summary
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide
from gpupool.engine.gang import GangUnschedulable, decide_gang
from gpupool.engine.growth import GrowingPool, Together, growth, named, shrink_again
from gpupool.engine.likeness import likeness
from gpupool.engine.trial import trial
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.groups import Group
from gpupool.scheduler.pending import Pending

MOST_COPIES = 10_000  # of one workload that are tried
_MOST_NODES = 100  # that are tried as an addition
_FURTHER = "new/"  # how names of nodes begin that do not exist; no real name has a "/"
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True, slots=True)
class Workload:
    """New pods that are alike."""

    kind: str
    namespace: str
    name: str
    request: PodRequest
    copies: int
    group: Group | None = None

    @property
    def pods(self) -> tuple[PodRequest, ...]:
        return tuple(self.copy(number) for number in range(self.copies))

    def copy(self, number: int) -> PodRequest:
        uid = f"new/{self.kind}/{self.namespace}/{self.name}/{number}"
        return replace(self.request, uid=uid, name=f"{self.name}-{number}")


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
    more: int  # further copies for which there would still be room
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
    back = [_Turn((leaver.request,), 1, _LEAVING) for leaver in leavers if leaver.comes_back]
    before = _starting_without_new(state, [*waiting, *back], question)
    turns = [*waiting, *back, *_new_turns(question.workloads)]
    found = _place(state, sorted(turns, key=_order))
    fates = tuple(_fate(state, workload, found) for workload in question.workloads)
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
        _cheapest(state, pools, _without_room(question.workloads, found)),
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
        found.setdefault(pool_of_labels(node.labels) or node.name, node)
    return {pool: _as_new(node) for pool, node in found.items()}


def _as_new(node: NodeInfo) -> NodeInfo:
    inventory = node.inventory
    if inventory is not None:
        cards = tuple(
            replace(card, health=CardHealth.HEALTHY, reason="", outside_mib=0)
            for card in inventory.cards
        )
        inventory = replace(inventory, cards=cards, other_walls=())
    taints = tuple(taint for taint in node.taints if taint.key not in _NOT_READY)
    return replace(node, inventory=inventory, taints=taints, unschedulable=False)


def _leavers(cluster: ClusterModel, question: Question) -> Iterator[Leaver]:
    for name in sorted(question.without):
        state = cluster.state(name)
        held = list(state.pods.values()) if state else []
        cluster.remove_node(name)
        for each in held:
            cluster.release(each.pod.uid)
            if each.pod.uid not in question.bound_to_node:
                yield Leaver(each.pod, name, comes_back=each.pod.uid not in question.alone)


# -- pods in the order in which the scheduler tries them --------------------------------------

_WAITING, _LEAVING, _NEW = range(3)


class _Turn(NamedTuple):
    """Pods that start together, or one alone."""

    pods: tuple[PodRequest, ...]
    least: int
    stage: int
    created: str = ""


def _order(turn: _Turn) -> tuple[int, int, str]:
    return -max((pod.priority for pod in turn.pods), default=0), turn.stage, turn.created


def _waiting(state: ClusterState) -> list[_Turn]:
    groups: dict[object, list[Pending]] = {}
    for pod in sorted(state.pending.values(), key=lambda pod: pod.created):
        together = pod.group is not None and state.groups.missing(pod.group) > 0
        groups.setdefault(pod.group.key if together and pod.group else pod.uid, []).append(pod)
    found = []
    for members in groups.values():
        group = members[0].group
        least = max(1, state.groups.missing(group)) if group is not None else 1
        requests = tuple(pod.request for pod in members)
        found.append(_Turn(requests, least, _WAITING, members[0].created))
    return found


def _new_turns(workloads: Sequence[Workload]) -> list[_Turn]:
    """Workloads of one group start together."""
    groups: dict[object, list[Workload]] = {}
    for at, workload in enumerate(workloads):
        groups.setdefault(workload.group.key if workload.group else at, []).append(workload)
    return [
        _Turn(
            tuple(pod for workload in members for pod in workload.pods),
            max(each.group.least if each.group else 1 for each in members),
            _NEW,
        )
        for members in groups.values()
    ]


@dataclass(slots=True)
class _Found:
    placed: dict[str, Placement] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)  # uid -> why it fits nowhere
    # Likeness of pods that fit nowhere -> why. Nothing is freed while pods are placed, so no pod
    # like them fits later, and thousands of them may wait.
    full: dict[Hashable, str] = field(default_factory=dict)


def _place(state: ClusterState, turns: Iterable[_Turn]) -> _Found:
    """Holds what it places."""
    found = _Found()
    for turn in turns:
        if turn.least > 1:
            _place_group(state, turn, found)
        else:
            _place_each(state, turn, found)
    return found


def _place_each(state: ClusterState, turn: _Turn, found: _Found) -> None:
    for pod in turn.pods:
        alike = likeness(state.cluster, pod)
        if alike in found.full:
            found.why[pod.uid] = found.full[alike]
            continue
        decision = decide(state.cluster, pod, state.policy)
        if isinstance(decision, Placement):
            state.cluster.hold(pod, decision.node, decision.allocation)
            found.placed[pod.uid] = decision
            continue
        found.why[pod.uid] = _why(state, decision)
        # A pod that wants to be near others may fit once they are placed.
        if not (pod.affinity or pod.spreads or pod.same_card):
            found.full[alike] = found.why[pod.uid]


def _place_group(state: ClusterState, turn: _Turn, found: _Found) -> None:
    if len(turn.pods) < turn.least:
        why = f"Its group needs {turn.least} pods; {len(turn.pods)} are there."
        found.why |= {pod.uid: why for pod in turn.pods}
        return
    decision = decide_gang(state.cluster, turn.pods, state.policy, turn.least)
    if isinstance(decision, GangUnschedulable):
        why = f"{decision.placed} of {turn.least} pods of its group fit. {decision.message}"
        found.why |= {pod.uid: why for pod in turn.pods}
        return
    by_uid = {pod.uid: pod for pod in turn.pods}
    for uid, placement in decision.items():
        state.cluster.hold(by_uid[uid], placement.node, placement.allocation)
        found.placed[uid] = placement


def _why(state: ClusterState, no: Unschedulable) -> str:
    return f"{no.message} {card_summary(state.cluster, no.pod)}".strip()


def _starting_without_new(
    state: ClusterState, turns: Sequence[_Turn], question: Question
) -> frozenset[str]:
    """Pods that would start if nothing new came. Only needed where new pods can go before them."""
    highest = max((each.request.priority for each in question.workloads), default=None)
    if highest is None or all(-_order(turn)[0] >= highest for turn in turns):
        return frozenset()
    found = _place(state, sorted(turns, key=_order))
    for uid in found.placed:
        state.cluster.release(uid)
    return frozenset(found.placed)


# -- what is told about them -------------------------------------------------------------------


def _fate(state: ClusterState, workload: Workload, found: _Found) -> Fate:
    uids = [pod.uid for pod in workload.pods]
    placed = tuple(found.placed[uid] for uid in uids if uid in found.placed)
    why = next((found.why[uid] for uid in uids if uid in found.why), "")
    if len(placed) < workload.copies:
        return Fate(workload, placed, 0, why)
    more = 0
    with trial(state.cluster) as trying:
        while workload.copies + more < MOST_COPIES:
            pod = workload.copy(workload.copies + more)
            decision = decide(state.cluster, pod, state.policy)
            if not isinstance(decision, Placement):
                why = _why(state, decision)
                break
            trying.hold(pod, decision.node, decision.allocation)
            more += 1
    return Fate(workload, placed, more, why)


def _pod_fate(pod: PodRequest, found: _Found) -> PodFate:
    placement = found.placed.get(pod.uid, Placement("", Allocation()))
    return PodFate(pod.namespace, pod.name, placement.node, why=found.why.get(pod.uid, ""))


def _without_room(workloads: Sequence[Workload], found: _Found) -> list[Together]:
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
    growing = [GrowingPool(name, node, _MOST_NODES) for name, node in pools.items()]
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
    grown = growth(pools, state.cluster, missing, state.policy, _MOST_NODES)
    shrink_again(state.cluster, grown)
    if len(grown.placed) < sum(len(together.pods) for together in missing):
        return ()
    return tuple(Addition(pool, count) for pool, count in sorted(grown.further.items()) if count)
