"""Decisions beside room that is kept for others: for pods that preempted, or waited for long.

The scheduler decides so, and programs that only tell what it would do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from gpupool.core.card_choice import CardChoice
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import reserved_uid
from gpupool.engine.decide import Placement, Unschedulable, decide_nominated, decide_on
from gpupool.engine.gang import GangUnschedulable, Placements, decide_gang
from gpupool.engine.trial import Trial, trial
from gpupool.scheduler.cluster_state import ClusterState

Found = TypeVar("Found")


def decide_beside(
    state: ClusterState, pod: PodRequest, nominated: str = ""
) -> Placement | Unschedulable:
    cluster, policy = state.cluster, state.policy
    found = _beside(state, [pod], lambda: decide_nominated(cluster, pod, policy, nominated))
    if isinstance(found, Placement):
        return Unschedulable(cluster, pod) if _leans_on(state, pod, found) else found
    usable = state.kept_room.usable_until_then(pod)
    if not usable:
        return found
    with trial(cluster) as trying:
        for uid in (pod.uid, *usable):
            trying.release(reserved_uid(uid))
        return decide_nominated(cluster, pod, policy, nominated)


def decide_planned(state: ClusterState, pod: PodRequest, controller: str) -> Placement | None:
    """Where a plan of moves wants the next pod of this controller, if it fits there as it is: room
    of others stays theirs, also of those with a lower priority."""
    for wish in state.planned_moves.of(controller, pod.uid):
        narrowed = on_cards(pod, wish.cards)
        if narrowed is None:
            continue
        with trial(state.cluster) as trying:
            trying.release(reserved_uid(pod.uid))
            found = decide_on(state.cluster, narrowed, state.policy, (wish.node,))
            if isinstance(found, Placement) and not _leans_on(state, narrowed, found):
                return found
    return None


def on_cards(pod: PodRequest, uuids: frozenset[str]) -> PodRequest | None:
    """The pod, if it took no other cards. None: it takes none of these."""
    if not pod.gpus:
        return None if uuids else pod
    choice = pod.card_choice or CardChoice()
    cards = tuple(sorted(uuid for uuid in uuids if choice.takes_uuid(uuid)))
    return replace(pod, card_choice=replace(choice, uuids=cards)) if cards else None


def decide_gang_beside(
    state: ClusterState, pods: Sequence[PodRequest], least: int
) -> Placements | GangUnschedulable:
    cluster, policy = state.cluster, state.policy
    return _beside(state, pods, lambda: decide_gang(cluster, pods, policy, least))


def _beside(state: ClusterState, pods: Sequence[PodRequest], decide: Callable[[], Found]) -> Found:
    """Room of their own is free for these pods. That of others with a lower priority is used only
    if nothing else fits.
    """
    if not state.preemption_claims and not state.kept_room:
        return decide()
    with trial(state.cluster) as trying:
        for pod in pods:
            trying.release(reserved_uid(pod.uid))
        found = decide()
        if isinstance(found, Unschedulable | GangUnschedulable) and lower_claims(state, pods):
            release_lower(state, pods, trying)
            found = decide()
    return found


def _leans_on(state: ClusterState, pod: PodRequest, found: Placement) -> bool:
    """Whether it fits only beside a pod that is not there yet, and may never be."""
    if not state.cluster.reserved or not (pod.affinity or pod.same_card):
        return False
    with trial(state.cluster) as trying:
        release_all(state, trying)
        alone = decide_on(state.cluster, pod, state.policy, (found.node,))
    return not isinstance(alone, Placement)


def lower_claims(state: ClusterState, pods: Sequence[PodRequest]) -> list[str]:
    """Pods whose room these may take over."""
    priority = min(pod.priority for pod in pods)
    return [
        uid for uid, claim in state.preemption_claims.items() if claim.request.priority < priority
    ] + state.kept_room.below(priority)


def release_lower(state: ClusterState, pods: Sequence[PodRequest], trying: Trial) -> None:
    for uid in lower_claims(state, pods):
        trying.release(reserved_uid(uid))


def release_all(state: ClusterState, trying: Trial) -> None:
    """As if no room were kept for anybody."""
    for uid in list(state.cluster.reserved):
        trying.release(reserved_uid(uid))
