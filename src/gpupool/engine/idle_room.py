"""IdleRoom: for how long cards may be kept idle for a pod that waits (`reservations.py`).

A pod of eight cards beside a notebook that runs for weeks would otherwise keep seven cards idle for
weeks. So after some hours without use, less those with use, the room is free for all again, for as
long as it was idle. Then it may be kept once more, twice as long as the last time: longer than any
pod runs one day, so that the pod gets its turn nevertheless.
"""

from collections.abc import Hashable
from typing import NamedTuple

from gpupool.engine.card_holds import CardHold
from gpupool.engine.cluster import ClusterModel, reserved_uid
from gpupool.engine.future_room import Seat
from gpupool.engine.node_state import CardState

IDLE_S = 4 * 3600.0
_MOST_DOUBLED = 16  # 30 years
_MOST_KNOWN = 4096


class _Idle(NamedTuple):
    """Of a room that is kept now."""

    sum_s: float = 0.0  # how much longer it was idle than used, so far
    seen_s: float = 0.0  # when somebody looked last
    is_idle: bool = False  # since then

    def at(self, now_s: float) -> float:
        gone_s = now_s - self.seen_s
        return max(0.0, self.sum_s + (gone_s if self.is_idle else -gone_s))


class IdleRoom:
    def __init__(self) -> None:
        self._idle: dict[Hashable, _Idle] = {}
        self._pauses: dict[Hashable, tuple[int, float]] = {}  # how many, and the end of the last

    def is_over(self, key: Hashable, is_idle: bool, now_s: float) -> bool:
        """Whether its room was idle for too long. If so, it pauses from now on."""
        # Use for a minute must not make up for hours: pods that come each hour would keep it idle
        # for ever.
        idle_s = self._idle.get(key, _Idle()).at(now_s)
        self._idle[key] = _Idle(idle_s, now_s, is_idle)
        times, _ = self._pauses.get(key, (0, 0.0))
        if not is_idle or idle_s < IDLE_S * 2 ** min(times, _MOST_DOUBLED):
            return False
        if len(self._pauses) >= _MOST_KNOWN:
            del self._pauses[next(iter(self._pauses))]
        self._pauses.pop(key, None)
        self._pauses[key] = (times + 1, now_s + idle_s)
        return True

    def pauses(self, key: Hashable, now_s: float) -> bool:
        return key in self._pauses and now_s < self._pauses[key][1]

    def dropped(self, key: Hashable) -> None:
        """No room is kept for it now."""
        self._idle.pop(key, None)

    def started(self, key: Hashable) -> None:
        """It does not wait any more. Another group may come under the same name."""
        self._pauses.pop(key, None)


def is_idle(cluster: ClusterModel, seat: Seat) -> bool:
    """Whether something is free of what is kept there."""
    held = cluster.held(reserved_uid(seat.pod.uid))
    if held is None or not held.cards:
        return True
    state = cluster.state(held.node)
    if state is None:
        return False
    return any(
        _is_free(state.cards[state.card_rows[hold.uuid]], hold)
        for hold in held.cards
        if hold.uuid in state.card_rows
    )


def _is_free(card: CardState, kept: CardHold) -> bool:
    """The reservation itself is one of the pods of the card. Of what pods hold that it waits for,
    it keeps nothing.
    """
    units, percent = (0, 0) if kept.whole else (kept.units, kept.percent)
    closers = card.wholes + card.closed - kept.whole
    free, compute = card.left(card.units - units, card.percent - percent, closers)
    return bool((free and (kept.whole or units)) or (compute and percent))
