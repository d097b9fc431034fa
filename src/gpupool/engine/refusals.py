"""Refusals: how much of what pods ask for gets a place, and how far a cluster is overloaded.

A pod was refused if it got no place although a pod that asked after it did. Those behind the last
one that got a place were perhaps not tried yet: a burst of pods is no refusal.
"""

from collections import deque
from collections.abc import Callable

from gpupool.engine.cluster import MOST_PLACED, ClusterModel
from gpupool.engine.kinds import Kind

MOST_OVERLOAD = 1.5
_LEAST_ACCEPTED = 0.1  # less makes no difference
_FADE = 1 - 1 / 500  # what a pod counts when one more was seen
_ENOUGH = 0.98  # up to this part of all cards asked for, a cluster counts as large enough
# What is asked for beyond that counts more than once: pods that run already stay where they are.
_STEEP = 1.5
# With less in use, what is refused is refused for other reasons than the load.
_BUSY = 0.9


class Refusals:
    __slots__ = ("_asked", "_got", "_open")

    def __init__(self) -> None:
        # Until it is known whether they got a place.
        self._open: deque[tuple[str, Kind]] = deque(maxlen=MOST_PLACED)
        self._asked = self._got = 0.0

    def count(self, uid: str, kind: Kind) -> None:
        self._open.append((uid, kind))

    @property
    def accepted(self) -> float:
        """The part of what was asked for lately that got a place."""
        return self._got / self._asked if self._asked else 1.0

    def look(self, cluster: ClusterModel, amount: Callable[[Kind], int]) -> None:
        """`amount`: what a pod of the kind asks for; 0: it does not count."""
        placed = set(cluster.placed)
        cluster.placed.clear()
        got_in = [uid in placed for uid, _ in self._open]
        while got_in and not got_in[-1]:
            got_in.pop()
        for has_place in got_in:
            _, kind = self._open.popleft()
            asked = amount(kind)
            self._asked = self._asked * _FADE + asked
            self._got = self._got * _FADE + asked * has_place


def overload(held: float, accepted: float) -> float:
    """How many times as much is asked for as fits, from 1 to `MOST_OVERLOAD`.

    `held`: the part of all cards that is in use.
    """
    if held < _BUSY:
        return 1.0
    asked = held / max(accepted, _LEAST_ACCEPTED)
    return min(max(1.0, 1 + _STEEP * (asked - _ENOUGH)), MOST_OVERLOAD)
