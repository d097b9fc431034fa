"""A trace with its own times: jobs arrive, wait for room in the order of arrival, run, and leave.

Time is virtual. A waiting job is tried again when another one has left. Jobs of a shape that did
not fit are not tried again before the next one leaves, unless room is kept for them.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from gpupool.replay.run import Decision, Progress, decision_of
from gpupool.replay.timed_stage import TimedJob, TimedStage, jobs_of
from gpupool.replay.trace import Trace

_STEP = 200


@dataclass(slots=True)
class TimedRecord:
    decisions: list[Decision] = field(default_factory=list)  # of the pods that got a node
    waits_s: list[int] = field(default_factory=list)  # of the same pods
    times_s: list[int] = field(default_factory=list)  # times of changes
    allocated_milli: list[int] = field(default_factory=list)  # since the time at the same index
    waiting: list[int] = field(default_factory=list)  # pods, from then on
    last_arrival_s: int = 0
    last_end_s: int = 0  # of a pod that ends
    reservations: int = 0
    attempts: int = 0
    seconds: float = 0.0


class _Clock:
    def __init__(self, trace: Trace, policy: str, *, reserves: bool) -> None:
        self.jobs = jobs_of(trace)
        self.stage = TimedStage(trace, policy, reserves=reserves)
        self.record = TimedRecord()
        self.queue: dict[int, TimedJob] = {}  # waiting jobs, in order
        self.leaving: list[tuple[int, int]] = []

    def try_job(self, at: int, now: int) -> bool:
        job = self.jobs[at]
        self.record.attempts += len(job.members)
        found = self.stage.attempt(job, now)
        if found is None:
            return False
        for member, request in zip(job.members, job.requests, strict=True):
            self.record.decisions.append(decision_of(member, found[request.uid]))
            self.record.waits_s.append(now - job.arrives_s)
        if job.runs_s is not None:
            heappush(self.leaving, (now + job.runs_s, at))
            self.record.last_end_s = max(self.record.last_end_s, now + job.runs_s)
        return True

    def leave(self, now: int) -> None:
        """Remove all jobs that end by now, then place the waiting ones that fit."""
        while self.leaving and self.leaving[0][0] <= now:
            self.stage.leave(self.jobs[heappop(self.leaving)[1]], now)
        refused: set[Hashable] = set()
        kept_for = self.stage.reservations
        # First those for which room is kept: one that goes elsewhere leaves its room to the others.
        for at, job in sorted(self.queue.items(), key=lambda each: each[1].members not in kept_for):
            kept = job.members in kept_for
            if job.shape in refused and not kept:
                continue
            if self.try_job(at, now):
                del self.queue[at]
            elif not kept:
                refused.add(job.shape)
        self.look(now)

    def arrive(self, at: int) -> None:
        now = self.jobs[at].arrives_s
        self.stage.arrive(self.jobs[at])
        if not self.try_job(at, now):
            self.queue[at] = self.jobs[at]
        self.look(now)

    def look(self, now: int) -> None:
        if self.queue and self.stage.reserve(list(self.queue.values()), now):
            self.record.reservations += 1
        self.record.times_s.append(now)
        self.record.allocated_milli.append(self.stage.allocated_milli)
        self.record.waiting.append(len(self.queue))


def replay_timed(
    trace: Trace, policy: str, progress: Progress, *, reserves: bool = True
) -> TimedRecord:
    clock = _Clock(trace, policy, reserves=reserves)
    arrived = 0  # pods, since the last progress
    for at, job in enumerate(clock.jobs):
        # One time after the other: waiting jobs are placed when room became free, not at the next
        # arrival.
        while clock.leaving and clock.leaving[0][0] <= job.arrives_s:
            clock.leave(clock.leaving[0][0])
        clock.arrive(at)
        arrived += len(job.members)
        if arrived >= _STEP:
            progress(arrived)
            arrived = 0
    progress(arrived)
    clock.record.last_arrival_s = clock.jobs[-1].arrives_s if clock.jobs else 0
    # Once no job waits, no more decisions follow.
    while clock.leaving and clock.queue:
        clock.leave(clock.leaving[0][0])
    clock.record.seconds = clock.stage.seconds
    return clock.record
