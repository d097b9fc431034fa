"""Waiting: who waits for room. Reservation: the room that is kept for them (`reservations.py`)."""

from collections.abc import Hashable
from dataclasses import dataclass

from gpupool.core.pods import PodRequest
from gpupool.engine.future_room import Seat


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod, or pods that start together or not at all."""

    key: Hashable
    pods: tuple[PodRequest, ...]
    since_s: float

    @property
    def priority(self) -> int:
        return min(pod.priority for pod in self.pods)

    @property
    def cards(self) -> int:
        return sum(ask.whole or ask.cards for pod in self.pods for ask in pod.gpus)


@dataclass(slots=True)
class Reservation:
    waiting: Waiting
    seats: list[Seat]
    made_s: float
    expected_s: float
    look_s: float  # when somebody looks whether other room is better
    by_age: bool  # it was the oldest of those that waited
    moves: int = 0

    def nodes(self) -> set[str]:
        return {seat.placement.node for seat in self.seats}
