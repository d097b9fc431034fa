"""When a piece of work took too much of the processor, on a machine whose speed changes.

Processor time leaves out the time in which other programs run, but not what they take from a core
that is shared: caches, its other half, its clock. On two cores of a virtual machine the same work
took from 2.8 to 11.8 ms within 20 seconds. So whatever took long is compared with work of known
length, which is done right afterwards.
"""

import statistics
import time

BOUND_S = 0.05  # on a processor of usual speed
_MOST_SLOWNESS = 4.0  # past it, the work is too long on any machine
_USUAL_S = 0.0031  # what `_known_work` takes on a quiet machine of 2026


def is_too_long(took_s: float) -> bool:
    return took_s > BOUND_S and took_s > BOUND_S * slowness()


def slowness() -> float:
    """How many times as long as usual the processor takes now: from 1 to 4."""
    measured_s = statistics.median(_known_work_s() for _ in range(5))
    return min(max(measured_s / _USUAL_S, 1.0), _MOST_SLOWNESS)


def _known_work_s() -> float:
    began_s = time.thread_time()
    _known_work()
    return time.thread_time() - began_s


def _known_work() -> None:
    """Small objects, as they are made of a request."""
    made = {}
    for number in range(8_000):
        made[f"u{number}"] = (number, {"kind": "User", "name": number})
