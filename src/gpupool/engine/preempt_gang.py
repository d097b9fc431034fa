"""preempt_gang: which pods of lower priority must leave so that all pods of a group fit, or none.

The search is one trial: each member sees the members and the victims before it, so the result is
right card by card. Large members are placed first; if that fails, those of low priority, because
they may evict the fewest and need the room that is free. A pod without a group is a group of one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from gpupool.core.pods import DisruptionBudget, PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide, decide_on
from gpupool.engine.gang import size_of
from gpupool.engine.policies.policy import Policy
from gpupool.engine.preempt import ENOUGH, NoPreemption, preempt, preempt_on
from gpupool.engine.trial import trial

_LEAST_ENOUGH = 10
_Part = tuple[Placement, tuple[str, ...]]  # of one pod: where it will be, and its victims
_NOWHERE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Room:
    """What the pods will have when all victims have gone."""

    placements: tuple[Placement, ...]
    victims: tuple[tuple[str, ...], ...]  # uids, for each pod; the most important first


def preempt_gang(
    cluster: ClusterModel,
    pods: Sequence[PodRequest],
    policy: Policy,
    budgets: Sequence[DisruptionBudget] = (),
    spared: Collection[str] = (),
    begun: Mapping[str, str] = _NOWHERE,
) -> Room | NoPreemption:
    """All of the pods get room, or nobody is a victim.

    `begun`: by uid the node that other pods are leaving for this one already. It goes first, or
    those would have been evicted for nothing.
    """
    # Members are held in the trial: none of them may be the victim of another.
    spared = {*spared, *(pod.uid for pod in pods)}
    no: NoPreemption | None = None
    for order in orders(pods):
        found = _in_order(cluster, order, policy, budgets, spared, begun)
        if isinstance(found, dict):
            parts = [found[pod.uid] for pod in pods]
            return Room(tuple(part[0] for part in parts), tuple(part[1] for part in parts))
        no = no or found
    assert no is not None
    return no


def orders(pods: Sequence[PodRequest]) -> Iterator[list[PodRequest]]:
    """Whoever asks later whether they still fit asks in the same orders, or finds they do not."""
    largest = sorted(pods, key=size_of, reverse=True)
    yield largest
    if len({pod.priority for pod in pods}) > 1:
        yield sorted(largest, key=lambda pod: pod.priority)


def _in_order(
    cluster: ClusterModel,
    pods: Sequence[PodRequest],
    policy: Policy,
    budgets: Sequence[DisruptionBudget],
    spared: Collection[str],
    begun: Mapping[str, str],
) -> dict[str, _Part] | NoPreemption:
    found: dict[str, _Part] = {}
    # The whole group takes about as long as one pod: the scheduler decides nothing else meanwhile.
    enough = max(_LEAST_ENOUGH, ENOUGH // len(pods))
    with trial(cluster) as trying:
        for pod in pods:
            victims: tuple[str, ...] = ()
            decision = decide(cluster, pod, policy)
            if isinstance(decision, Unschedulable):
                node = begun.get(pod.uid, "")
                there = preempt_on(cluster, pod, policy, node, budgets, spared) if node else None
                answer = there or preempt(cluster, pod, policy, budgets, spared, enough)
                if isinstance(answer, NoPreemption):
                    return answer
                victims = answer.victims
                for uid in victims:
                    budgets = _used(budgets, cluster, uid)
                    trying.release(uid)
                decision = decide_on(cluster, pod, policy, (answer.node,))
            assert isinstance(decision, Placement), f"{pod.name} does not fit beside its victims"
            trying.hold(pod, decision.node, decision.allocation)
            found[pod.uid] = (decision, victims)
    return found


def _used(
    budgets: Sequence[DisruptionBudget], cluster: ClusterModel, uid: str
) -> Sequence[DisruptionBudget]:
    """What the budgets still allow after this victim."""
    held = cluster.held(uid)
    if held is None or not budgets:
        return budgets
    return [
        replace(budget, allowed=budget.allowed - 1) if budget.covers(held.pod) else budget
        for budget in budgets
    ]
