"""RunTimes: how long pods run, learned from those that have ended, by their kind of work.

Of a kind that is not known the longest runs count: nobody may be promised what nobody knows.
"""

from bisect import bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

_KEPT = 64  # runs of each kind: recent ones say more than old ones
_MOST_KINDS = 4096
_ENOUGH = 3  # runs, for a kind to be known
_MANY = 8  # runs, to say that none takes longer
_UNKNOWN_S = 86_400.0  # nothing at all has ended yet
_USUAL, _LONG = 0.5, 0.9  # parts of the runs that end before


@dataclass(slots=True)
class _Runs:
    recent: deque[float] = field(default_factory=deque)
    in_order: list[float] = field(default_factory=list)

    def add(self, seconds: float, most: int) -> None:
        if len(self.recent) >= most:
            oldest = self.recent.popleft()
            del self.in_order[bisect_right(self.in_order, oldest) - 1]
        self.recent.append(seconds)
        insort(self.in_order, seconds)

    def longer_than(self, seconds: float) -> int:
        """Index of the first run that lasted longer."""
        return bisect_right(self.in_order, seconds)


class RunTimes:
    def __init__(self) -> None:
        self._kinds: OrderedDict[Hashable, _Runs] = OrderedDict()  # least recently learned first
        self._all = _Runs()

    def ended(self, kind: Hashable, seconds: float) -> None:
        runs = self._kinds.get(kind)
        if runs is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.popitem(last=False)
            runs = self._kinds[kind] = _Runs()
        self._kinds.move_to_end(kind)
        runs.add(seconds, _KEPT)
        self._all.add(seconds, 8 * _KEPT)

    def left_s(self, kind: Hashable, age_s: float, of: int = 1) -> float:
        """How much longer a pod of this kind runs that has run for so long. Never below 0.

        `of`: it is one of so many pods. With even chances all of them have ended by then.
        """
        return self._left(kind, age_s, _USUAL ** (1 / max(1, of)))

    def at_most_s(self, kind: Hashable) -> float:
        """How long the longest pod of this kind ran; not known: for ever."""
        runs = self._kinds.get(kind)
        enough = runs is not None and len(runs.in_order) >= _MANY
        return runs.in_order[-1] if runs is not None and enough else float("inf")

    def _left(self, kind: Hashable, age_s: float, part: float) -> float:
        runs = self._kinds.get(kind)
        if runs is not None:
            first = runs.longer_than(age_s)
            if len(runs.in_order) - first >= _ENOUGH:
                return _quantile(runs.in_order, first, part) - age_s
        # It runs longer than others of its kind did, or nobody knows its kind. What has run for
        # long goes on for about as long again.
        first = self._all.longer_than(age_s)
        if len(self._all.in_order) - first >= _ENOUGH:
            return max(_quantile(self._all.in_order, first, max(part, _LONG)) - age_s, age_s)
        return max(_UNKNOWN_S if not self._all.in_order else self._all.in_order[-1], age_s)


def _quantile(in_order: Sequence[float], first: int, part: float) -> float:
    return in_order[first + int(part * (len(in_order) - first))]
