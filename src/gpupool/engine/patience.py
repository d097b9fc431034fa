"""Patience: how long a pod waits until room is kept for it (`reservations.py`)."""

from collections import deque
from collections.abc import Sequence

from gpupool.core.pods import PodRequest
from gpupool.engine.room_scan import cards_of

# Shorter waits are nothing unusual where pods come and go, and room that is kept for many pods of
# one card is missing to large ones (docs/packing.md).
LEAST_PATIENCE_S = 900.0
_MOST_PATIENCE_S = 86_400.0
_USUAL = 0.75  # part of the pods that wait no longer
_KEPT_WAITS = 256
_SIZES = (8, 4, 2)  # cards of a pod


class Patience:
    """Longer than pods of the same priority and about as many cards usually wait.

    By size, because most pods have one card and wait for none: beside them, every large pod would
    have waited for long at once. Room was then kept for all of them at once, on machines
    that stay full for weeks, and the few that have waited longest waited even longer.
    """

    def __init__(self) -> None:
        self._waits: dict[tuple[int, int], deque[float]] = {}  # by priority and size
        self._known: dict[tuple[int, int], float] = {}  # thousands of pods may wait

    def placed(self, pods: Sequence[PodRequest], waited_s: float) -> None:
        alike = _alike(pods)
        self._waits.setdefault(alike, deque(maxlen=_KEPT_WAITS)).append(waited_s)
        self._known.pop(alike, None)

    def of(self, pods: Sequence[PodRequest]) -> float:
        """Of a pod, or of pods that start together."""
        alike = _alike(pods)
        if alike not in self._waits:
            return LEAST_PATIENCE_S
        if alike not in self._known:
            waits = sorted(self._waits[alike])
            usual_s = waits[int(len(waits) * _USUAL)]
            self._known[alike] = min(max(usual_s, LEAST_PATIENCE_S), _MOST_PATIENCE_S)
        return self._known[alike]


def _alike(pods: Sequence[PodRequest]) -> tuple[int, int]:
    """Their priority, and the size of the largest."""
    cards = max(map(cards_of, pods))
    return min(pod.priority for pod in pods), next((size for size in _SIZES if cards >= size), 1)
