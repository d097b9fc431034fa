"""decide_gang: placements for all pods of a group, or for none of them.

Each decision sees the ones before it. The largest pods are placed first, because small ones still
find room after them. The result is in the order of the arguments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide
from gpupool.engine.policies.policy import Policy
from gpupool.engine.trial import trial


@dataclass(frozen=True, slots=True)
class GangUnschedulable:
    uid: str  # of the first pod that did not fit beside the others
    placed: int  # how many were placed before it
    message: str  # why, with those in place


def decide_gang(
    cluster: ClusterModel, pods: Sequence[PodRequest], policy: Policy
) -> list[Placement] | GangUnschedulable:
    """The caller holds the placements, or none."""
    found: dict[str, Placement] = {}
    with trial(cluster) as trying:
        for pod in sorted(pods, key=_size, reverse=True):
            decision = decide(cluster, pod, policy)
            if isinstance(decision, Unschedulable):
                # The message is made when it is read: here, inside the trial, with the other
                # members in place.
                return GangUnschedulable(pod.uid, len(found), decision.message)
            trying.hold(pod, decision.node, decision.allocation)
            found[pod.uid] = decision
    return [found[pod.uid] for pod in pods]


def _size(pod: PodRequest) -> tuple[int, int, int]:
    return (
        sum(ask.whole for ask in pod.gpus),
        sum(ask.units * ask.cards for ask in pod.gpus),
        pod.resources.get("cpu", 0),
    )
