"""How much of the event loop's time the output of all containers may take.

What a program prints costs more than its bytes tell: each line gets a time stamp, so that a
megabyte of empty lines becomes fifty. So it is the time that counts, for all containers together: a
namespace full of programs that print without end must not keep others from the API server.
"""

_SHARE = 0.2  # of the loop's time
_BURST_S = 0.02  # of work that nobody has to wait for


class Pace:
    def __init__(self) -> None:
        self._paid_at = 0.0  # when the work so far is no more than its share of the time

    def spend(self, now_s: float, work_s: float) -> float:
        """Somebody has worked that long, until now. How long he should rest."""
        self._paid_at = max(self._paid_at, now_s - work_s) + work_s / _SHARE
        ahead_s = self._paid_at - now_s
        return ahead_s if ahead_s > _BURST_S / _SHARE else 0.0
