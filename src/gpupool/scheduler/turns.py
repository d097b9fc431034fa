"""turns: pods are placed in the order in which the scheduler tries them, beside kept room. Pure."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpupool.core.pods import PodRequest
from gpupool.engine.card_words import card_summary
from gpupool.engine.decide import Placement, Unschedulable
from gpupool.engine.gang import GangUnschedulable
from gpupool.engine.likeness import likeness
from gpupool.scheduler.beside_claims import decide_beside, decide_gang_beside
from gpupool.scheduler.cluster_state import ClusterState

WAITING, LEAVING, NEW = range(3)  # pods that wait already are tried first, new ones last


class Turn(NamedTuple):
    """Pods that start together, or one alone."""

    pods: tuple[PodRequest, ...]
    least: int
    stage: int
    created: str = ""


def in_order(turn: Turn) -> tuple[int, int, str]:
    return -max((pod.priority for pod in turn.pods), default=0), turn.stage, turn.created


@dataclass(slots=True)
class Found:
    placed: dict[str, Placement] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)  # uid -> why it fits nowhere
    # Likeness of pods that fit nowhere -> why. Nothing is freed while pods are placed, so no pod
    # like them fits later, and thousands of them may wait. Only kept room that is not needed any
    # more becomes free, and then all of them are tried again.
    full: dict[Hashable, str] = field(default_factory=dict)

    def place(self, state: ClusterState, pod: PodRequest, there: Placement) -> None:
        state.cluster.hold(pod, there.node, there.allocation)
        self.placed[pod.uid] = there
        self.why.pop(pod.uid, None)
        state.kept_room.drop(pod.uid)


def place(state: ClusterState, turns: Iterable[Turn]) -> Found:
    """Holds what it places."""
    found, ordered = Found(), list(turns)
    while not _placed_all(state, ordered, found):
        found.full.clear()
    return found


def _placed_all(state: ClusterState, turns: Sequence[Turn], found: Found) -> bool:
    """False: kept room became free, and those that came before may fit now."""
    for turn in turns:
        kept = len(state.kept_room)
        if turn.least > 1:
            _place_group(state, turn, found)
        else:
            _place_each(state, turn, found)
        if len(state.kept_room) < kept:
            return False
    return True


def _place_each(state: ClusterState, turn: Turn, found: Found) -> None:
    for pod in turn.pods:
        if pod.uid in found.placed:
            continue
        alike = pod.uid if pod.uid in state.kept_room else likeness(state.cluster, pod)
        if alike in found.full:
            found.why[pod.uid] = found.full[alike]
            continue
        decision = decide_beside(state, pod)
        if isinstance(decision, Placement):
            found.place(state, pod, decision)
            continue
        found.why[pod.uid] = why_not(state, decision)
        # A pod that wants to be near others may fit once they are placed.
        if not (pod.affinity or pod.spreads or pod.same_card):
            found.full[alike] = found.why[pod.uid]


def _place_group(state: ClusterState, turn: Turn, found: Found) -> None:
    if any(pod.uid in found.placed for pod in turn.pods):
        return
    if len(turn.pods) < turn.least:
        why = f"Its group needs {turn.least} pods; {len(turn.pods)} are there."
        found.why |= {pod.uid: why for pod in turn.pods}
        return
    decision = decide_gang_beside(state, turn.pods, turn.least)
    if isinstance(decision, GangUnschedulable):
        why = f"{decision.placed} of {turn.least} pods of its group fit. {decision.message}"
        found.why |= {pod.uid: why for pod in turn.pods}
        return
    by_uid = {pod.uid: pod for pod in turn.pods}
    for uid, placement in decision.items():
        found.place(state, by_uid[uid], placement)


def why_not(state: ClusterState, no: Unschedulable) -> str:
    return f"{no.message} {card_summary(state.cluster, no.pod)}".strip()
