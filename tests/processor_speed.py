"""When a piece of work took too much of the processor, in a process whose speed changes.

Processor time leaves out the time in which other programs run, but not what they take from a core
that is shared: caches, its other half, its clock. On two cores of a virtual machine the same work
took from 2.8 to 11.8 ms within 20 seconds. Thousands of tests leave a C heap full of holes, too:
there, large requests take three to seven times as long as in a server of its own. So whatever took
long is compared with known work, which is done right afterwards in the same process.
"""

import statistics
import time

import orjson

from localkube.apiserver.allocation import apart

BOUND_S = 0.05  # on a processor of usual speed
_MOST_SLOWNESS = 4.0  # past it, the work is too long on any machine
_USUAL_S = 0.0055  # what `_known_work` takes in a new process, on a quiet machine of 2026
_BODY = orjson.dumps([{"kind": "User", "name": f"u{number}"} for number in range(20_000)])


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
    """A body is read and written as those of large requests are."""
    with apart():
        orjson.dumps(orjson.loads(_BODY))
