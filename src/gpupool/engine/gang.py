"""decide_gang: placements for at least `least` pods of a group, or for none of them.

Each decision sees the ones before it, so the order matters. To find the best order is a hard
problem; a few orders are tried, and the first with enough placements wins. Members that do not fit
are left out.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide, feasible
from gpupool.engine.likeness import likeness
from gpupool.engine.policies.policy import Policy
from gpupool.engine.trial import Trial, trial

Placements = dict[str, Placement]  # by uid
Order = list[PodRequest]


@dataclass(frozen=True, slots=True)
class GangUnschedulable:
    uid: str  # of the first pod without which there are too few
    placed: int  # how many were placed before it
    message: str  # why, with those in place


def decide_gang(
    cluster: ClusterModel, pods: Sequence[PodRequest], policy: Policy, least: int
) -> Placements | GangUnschedulable:
    """The caller holds all placements, or none."""
    first_no: GangUnschedulable | None = None
    tried: list[Order] = []
    for order in _orders(cluster, pods, policy, least):
        if order in tried:
            continue
        tried.append(order)
        with trial(cluster) as trying:
            found = _in_order(cluster, order, policy, least, trying)
            if isinstance(found, dict):
                return found
            # The message is made when it is read: here, inside the trial, with the other members in
            # place.
            if first_no is None:
                placed, no = found
                first_no = GangUnschedulable(no.pod.uid, placed, no.message)
    assert first_no is not None
    return first_no


def _in_order(
    cluster: ClusterModel, order: Order, policy: Policy, least: int, trying: Trial
) -> Placements | tuple[int, Unschedulable]:
    """Placements of those that fit; or how many these are, and the first that was one too many."""
    found: Placements = {}
    may_fail = len(order) - least
    full: set[Hashable] = set()  # alike pods of which one did not fit
    no: Unschedulable | None = None
    for pod in order:
        alike = likeness(cluster, pod)
        decision = no if no and alike in full else decide(cluster, pod, policy)
        if isinstance(decision, Placement):
            trying.hold(pod, decision.node, decision.allocation)
            found[pod.uid] = decision
            continue
        no = decision
        may_fail -= 1
        if may_fail < 0:
            return len(found), no
        # These may fit later, when other members are in place.
        if not (pod.affinity or pod.spreads or pod.same_card):
            full.add(alike)
    return found


def _orders(
    cluster: ClusterModel, pods: Sequence[PodRequest], policy: Policy, least: int
) -> Iterator[Order]:
    """Pods that are alike stay in the order of the arguments."""
    # Large pods first, because small ones still find room after them.
    largest = sorted(pods, key=size_of, reverse=True)
    yield largest
    kinds: defaultdict[Hashable, Order] = defaultdict(list)
    for pod in largest:
        kinds[likeness(cluster, pod)].append(pod)
    if len(kinds) == 1:
        return
    # A pod that fits anywhere could take the only node of another one. Those without any node
    # come last: perhaps they need a member beside them.
    nodes = cluster.all_nodes()
    yield [
        pod
        for alike in sorted(
            kinds.values(),
            key=lambda alike: len(feasible(cluster, alike[0], policy, nodes)) or len(nodes) + 1,
        )
        for pod in alike
    ]
    # As many as are needed and as small as possible, the largest of these first.
    smallest = sorted(pods, key=size_of)
    yield [*sorted(smallest[:least], key=size_of, reverse=True), *smallest[least:]]
    yield smallest
    # Pods that need different things leave each other room: one of each, and again.
    yield [pod for turn in zip_longest(*kinds.values()) for pod in turn if pod is not None]


def size_of(pod: PodRequest) -> tuple[int, int, int]:
    return (
        sum(ask.whole for ask in pod.gpus),
        sum(ask.units * ask.cards for ask in pod.gpus),
        pod.resources.get("cpu", 0),
    )
