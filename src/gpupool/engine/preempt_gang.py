"""preempt_gang: which pods of lower priority must leave so that all pods of a group fit, or none.

The search is one trial: each member sees the members and the victims before it, so the result is
right card by card. Large members are placed first. A pod without a group is a group of one.
"""

from collections.abc import Collection, Mapping, Sequence
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
    found: dict[str, Placement] = {}
    victims: dict[str, tuple[str, ...]] = {}
    # Members are held in the trial: none of them may be the victim of another.
    spared = {*spared, *(pod.uid for pod in pods)}
    # The whole group takes about as long as one pod: the scheduler decides nothing else meanwhile.
    enough = max(_LEAST_ENOUGH, ENOUGH // len(pods))
    with trial(cluster) as trying:
        for pod in sorted(pods, key=size_of, reverse=True):
            decision = decide(cluster, pod, policy)
            if isinstance(decision, Unschedulable):
                node = begun.get(pod.uid, "")
                there = preempt_on(cluster, pod, policy, node, budgets, spared) if node else None
                answer = there or preempt(cluster, pod, policy, budgets, spared, enough)
                if isinstance(answer, NoPreemption):
                    return answer
                for uid in answer.victims:
                    budgets = _used(budgets, cluster, uid)
                    trying.release(uid)
                victims[pod.uid] = answer.victims
                decision = decide_on(cluster, pod, policy, (answer.node,))
            assert isinstance(decision, Placement), f"{pod.name} does not fit beside its victims"
            trying.hold(pod, decision.node, decision.allocation)
            found[pod.uid] = decision
    return Room(
        tuple(found[pod.uid] for pod in pods), tuple(victims.get(pod.uid, ()) for pod in pods)
    )


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
