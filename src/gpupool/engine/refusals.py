"""Refusals: how much is asked for, beside what fits. From pods that came, got no place, or left.

A pod was refused if it got no place although a pod that asked after it did. Those behind the last
one that got a place were perhaps not tried yet: a burst of pods is no refusal.
"""

from collections import deque
from collections.abc import Callable

from gpupool.engine.cluster import MOST_PLACED, ClusterModel
from gpupool.engine.shapes import Shape

MOST_OVERLOAD = 1.5
_LEAST_ACCEPTED = 0.1  # less makes no difference
_FADE = 1 - 1 / 4000  # what a pod counts when one more was seen
# If less than this part of what came has left again, pods stay: the cluster fills, and nobody
# knows yet how long they live.
_LEAVES = 1 / 3
_ENOUGH = 0.98  # up to this part of all cards asked for, a cluster counts as large enough
# What is asked for beyond that counts more than once: pods that run already stay where they are.
_STEEP = 1.5
# With less in use, what is refused is refused for other reasons than the load.
_BUSY = 0.9


class Refusals:
    __slots__ = ("_asked", "_before", "_got", "_held", "_left", "_open", "_pods")

    def __init__(self) -> None:
        # Until it is known whether they got a place.
        self._open: deque[tuple[str, Shape]] = deque(maxlen=MOST_PLACED)
        self._before: float | None = None  # what was held at the last look
        # Sums over pods, the last ones most: what they asked for, what of that got a place, what
        # left meanwhile, what was held when they came, and how many they are.
        self._asked = self._got = self._left = self._held = self._pods = 0.0

    def count(self, uid: str, shape: Shape) -> None:
        self._open.append((uid, shape))

    @property
    def accepted(self) -> float:
        """The part of what was asked for lately that got a place."""
        return self._got / self._asked if self._asked else 1.0

    def look(self, cluster: ClusterModel, amount: Callable[[Shape], int], held: float) -> None:
        """`amount`: what a pod of the shape asks for; 0: it does not count. `held`: by all pods."""
        placed = set(cluster.placed)
        cluster.placed.clear()
        got_in = [uid in placed for uid, _ in self._open]
        while got_in and not got_in[-1]:
            got_in.pop()
        new, all_asked, all_got = 0, self._asked, self._got
        for has_place in got_in:
            asked = amount(self._open.popleft()[1])
            got = asked if has_place else 0
            new += got
            all_asked = all_asked * _FADE + asked
            all_got = all_got * _FADE + got
        self._asked, self._got = all_asked, all_got
        fade = _FADE ** len(got_in)
        if self._before is not None:
            self._left = self._left * fade + self._before + new - held
        self._before = held
        self._held = self._held * fade + held * len(got_in)
        self._pods = self._pods * fade + len(got_in)

    @property
    def pods_leave(self) -> bool:
        """Whether the cluster does not only fill. Beside what got a place, because of those that
        wait nobody knows how long they will stay.
        """
        return self._left > 0 and self._left >= _LEAVES * self._got

    def load(self, cards: float) -> float:
        """What is asked for, as a part of all cards; 0: not known.

        What comes with each pod, times how long it stays: what is held is so many times what
        leaves with each pod (Little's law). So it is known long before the cluster is full.
        """
        # Pods may have left that were there before anybody was counted.
        if self._pods and self._left > 0 and self._left >= _LEAVES * self._asked:
            return self._held / self._pods * self._asked / self._left / cards
        held = (self._before or 0.0) / cards
        return held / max(self.accepted, _LEAST_ACCEPTED) if held >= _BUSY else 0.0


def overload(load: float) -> float:
    """How many times as much is asked for as fits, from 1 to `MOST_OVERLOAD`."""
    return min(max(1.0, 1 + _STEEP * (load - _ENOUGH)), MOST_OVERLOAD)
