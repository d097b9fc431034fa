"""Slows down whoever keeps coming with bad credentials: a token bucket for each peer."""

from typing import NamedTuple

_BURST = 20.0
_PER_SECOND = 2.0
_MAX_PEERS = 1024


class _Bucket(NamedTuple):
    left: float
    at_s: float


class FailedLogins:
    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def is_blocked(self, peer: str, now_s: float) -> bool:
        return self._left(peer, now_s) < 1.0

    def record(self, peer: str, now_s: float) -> None:
        left = max(self._left(peer, now_s) - 1.0, 0.0)
        self._buckets.pop(peer, None)  # so that the order stays the order of the last failure
        if len(self._buckets) >= _MAX_PEERS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[peer] = _Bucket(left, now_s)

    def _left(self, peer: str, now_s: float) -> float:
        bucket = self._buckets.get(peer)
        if bucket is None:
            return _BURST
        return min(_BURST, bucket.left + max(now_s - bucket.at_s, 0.0) * _PER_SECOND)
