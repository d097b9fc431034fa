"""A trace with its own times: pods arrive, wait for room in the order of arrival, run, and leave.

Time is virtual. A waiting pod is tried again when another pod has left. Pods of a shape that did
not fit are not tried again before the next pod leaves.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from gpupool.engine.verdicts import shape_of
from gpupool.replay.arrivals import by_time
from gpupool.replay.run import Decision, Progress, Stage, decision_of
from gpupool.replay.trace import Trace

_STEP = 200


@dataclass(slots=True)
class TimedRecord:
    decisions: list[Decision] = field(default_factory=list)  # of the pods that got a node
    waits_s: list[int] = field(default_factory=list)  # of the same pods
    times_s: list[int] = field(default_factory=list)  # times of changes
    allocated_milli: list[int] = field(default_factory=list)  # since the time at the same index
    waiting: list[int] = field(default_factory=list)  # pods, from then on
    attempts: int = 0
    seconds: float = 0.0


class _Clock:
    def __init__(self, trace: Trace, policy: str) -> None:
        self.trace = trace
        self.stage = Stage(trace, policy)
        self.record = TimedRecord()
        self.queue: dict[int, Hashable] = {}  # waiting pods in order, with their shapes
        self.leaving: list[tuple[int, int]] = []

    def try_pod(self, at: int, now: int, *, first: bool) -> bool:
        pod = self.trace.pods[at]
        self.record.attempts += 1
        attempt = self.stage.arrive if first else self.stage.attempt
        placement = attempt(pod, str(at))
        if placement is None:
            return False
        self.record.decisions.append(decision_of(at, placement))
        self.record.waits_s.append(now - (pod.arrives_s or 0))
        if pod.runs_s is not None:
            heappush(self.leaving, (now + pod.runs_s, at))
        return True

    def leave(self, now: int) -> None:
        """Remove all pods that end by now, then place the waiting pods that fit."""
        while self.leaving and self.leaving[0][0] <= now:
            self.stage.leave(str(heappop(self.leaving)[1]))
        refused: set[Hashable] = set()
        for at, shape in list(self.queue.items()):
            if shape in refused:
                continue
            if self.try_pod(at, now, first=False):
                del self.queue[at]
            else:
                refused.add(shape)
        self.note(now)

    def note(self, now: int) -> None:
        self.record.times_s.append(now)
        self.record.allocated_milli.append(self.stage.allocated_milli)
        self.record.waiting.append(len(self.queue))


def replay_timed(trace: Trace, policy: str, progress: Progress) -> TimedRecord:
    clock = _Clock(trace, policy)
    for count, at in enumerate(by_time(trace)):
        now = trace.pods[at].arrives_s or 0
        # One time after the other: waiting pods are placed when room became free, not at the next
        # arrival.
        while clock.leaving and clock.leaving[0][0] <= now:
            clock.leave(clock.leaving[0][0])
        if not clock.try_pod(at, now, first=True):
            clock.queue[at] = shape_of(trace.pods[at].request)
        clock.note(now)
        if count % _STEP == _STEP - 1:
            progress(_STEP)
    progress(len(trace.pods) % _STEP)
    # Once no pod waits, no more decisions follow.
    while clock.leaving and clock.queue:
        clock.leave(clock.leaving[0][0])
    clock.record.seconds = clock.stage.seconds
    return clock.record
