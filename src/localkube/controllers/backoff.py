"""Backoff: what fails again and again is tried again later and later."""


class Backoff:
    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._known: dict[tuple[str, ...], tuple[float, float]] = {}  # delay, since when

    def next(self, key: tuple[str, ...], now_s: float) -> None:
        """It is tried now; the next time has to wait longer."""
        delay_s, since_s = self._known.get(key, (0.0, now_s))
        if now_s - since_s > 2 * self._longest_s:
            delay_s = 0.0  # so long ago that it does not count
        longer_s = min(2 * delay_s, self._longest_s) or self._first_s
        self._known[key] = longer_s, now_s
        if len(self._known) > 10_000:
            self._forget(now_s)

    def left_s(self, key: tuple[str, ...], now_s: float) -> float:
        delay_s, since_s = self._known.get(key, (0.0, 0.0))
        return max(0.0, since_s + delay_s - now_s)

    def _forget(self, now_s: float) -> None:
        limit_s = 2 * self._longest_s
        self._known = {k: v for k, v in self._known.items() if now_s - v[1] <= limit_s}
