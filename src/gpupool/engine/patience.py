"""Patience: how long a pod waits until room is kept for it (`reservations.py`)."""

from collections import deque

LEAST_PATIENCE_S = 60.0
_MOST_PATIENCE_S = 86_400.0
_TIMES_USUAL = 1.5
_KEPT_WAITS = 256


class Patience:
    """Longer than others usually wait."""

    def __init__(self) -> None:
        self._waits: dict[int, deque[float]] = {}

    def placed(self, priority: int, waited_s: float) -> None:
        self._waits.setdefault(priority, deque(maxlen=_KEPT_WAITS)).append(waited_s)

    def of(self, priority: int) -> float:
        waits = sorted(self._waits.get(priority, ()))
        usual = waits[len(waits) * 9 // 10] if waits else 0.0
        return min(max(_TIMES_USUAL * usual, LEAST_PATIENCE_S), _MOST_PATIENCE_S)
