"""A trace with its own times: jobs arrive, wait for room in the order of arrival, run, and leave.

Time is virtual. A waiting job is tried again when another one has left. Jobs of a shape that did
not fit are not tried again before the next one leaves, unless room is kept for them.

A stream of pods (`load.py`) stops when its last pod has come: who waits then has waited for so long
at least.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from gpupool.replay.run import Decision, Progress, decision_of
from gpupool.replay.timed_stage import TimedJob, TimedStage, jobs_of
from gpupool.replay.trace import Trace

_STEP = 200
_NOBODY = -1  # leaves: a place is for all then


@dataclass(frozen=True, slots=True)
class Wait:
    pod: int  # its index in the trace
    arrived_s: int
    waited_s: int
    runs: bool  # no: it waited for so long at least


@dataclass(slots=True)
class TimedRecord:
    decisions: list[Decision] = field(default_factory=list)  # of the pods that got a node
    waits: list[Wait] = field(default_factory=list)  # of all that could ever fit
    times_s: list[int] = field(default_factory=list)  # times of changes
    allocated_milli: list[int] = field(default_factory=list)  # since the time at the same index
    waiting: list[int] = field(default_factory=list)  # pods, from then on
    last_arrival_s: int = 0
    last_end_s: int = 0  # of a pod that ends
    reservations: int = 0
    attempts: int = 0
    seconds: float = 0.0


class _Queue:
    """Waiting jobs in the order of arrival. Those of one shape fit now, or none of them does."""

    def __init__(self) -> None:
        self.kept: dict[int, TimedJob] = {}  # room is kept for them
        self._by_shape: dict[Hashable, OrderedDict[int, TimedJob]] = {}
        self._others: OrderedDict[int, TimedJob] = OrderedDict()
        self._numbers: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self.kept) + len(self._others)

    def add(self, at: int, job: TimedJob) -> None:
        self._numbers[job.members] = at
        self._others[at] = job
        self._by_shape.setdefault(job.shape, OrderedDict())[at] = job

    def remove(self, at: int) -> None:
        if self.kept.pop(at, None) is None:
            del self._numbers[self._take(at).members]

    def keep(self, members: tuple[int, ...]) -> None:
        at = self._numbers.pop(members)
        self.kept[at] = self._take(at)

    def give_back(self, members: tuple[int, ...]) -> None:
        """No room is kept for it any more: to its place in the order of arrival."""
        at = next(at for at, job in self.kept.items() if job.members == members)
        self.add(at, self.kept.pop(at))
        shape = self._others[at].shape
        self._others = OrderedDict(sorted(self._others.items()))
        self._by_shape[shape] = OrderedDict(sorted(self._by_shape[shape].items()))

    def _take(self, at: int) -> TimedJob:
        job = self._others.pop(at)
        same = self._by_shape[job.shape]
        del same[at]
        if not same:
            del self._by_shape[job.shape]
        return job

    def others(self) -> Iterable[TimedJob]:
        return self._others.values()

    def all(self) -> Iterable[TimedJob]:
        return (*self.kept.values(), *self._others.values())

    def firsts(self) -> list[int]:
        """The first job of each shape, in order: a heap."""
        return sorted(next(iter(same)) for same in self._by_shape.values())

    def first(self, shape: Hashable) -> int | None:
        same = self._by_shape.get(shape)
        return next(iter(same)) if same else None


class _Clock:
    def __init__(self, trace: Trace, policy: str, *, reserves: bool) -> None:
        self.jobs = jobs_of(trace)
        self.stage = TimedStage(trace, policy, reserves=reserves)
        self.record = TimedRecord()
        self.queue = _Queue()
        self.leaving: list[tuple[int, int]] = []
        self.looks: set[int] = set()  # times in `leaving` at which nobody leaves

    def try_job(self, at: int, now: int) -> bool:
        job = self.jobs[at]
        self.record.attempts += len(job.members)
        found = self.stage.attempt(job, now)
        if found is None:
            return False
        for member, request in zip(job.members, job.requests, strict=True):
            self.record.decisions.append(decision_of(member, found[request.uid]))
        self.note(job, now, runs=True)
        if job.runs_s is not None:
            heappush(self.leaving, (now + job.runs_s, at))
            self.record.last_end_s = max(self.record.last_end_s, now + job.runs_s)
        return True

    def note(self, job: TimedJob, now: int, *, runs: bool) -> None:
        waited_s = now - job.arrives_s
        self.record.waits += [Wait(m, job.arrives_s, waited_s, runs) for m in job.members]

    def leave(self, now: int) -> None:
        """Remove all jobs that end by now, then place the waiting ones that fit."""
        while self.leaving and self.leaving[0][0] <= now:
            at = heappop(self.leaving)[1]
            if at != _NOBODY:
                self.stage.leave(self.jobs[at], now)
        self.stage.lapse_places(now)
        self._place_waiting(now)
        self.look(now)

    def _place_waiting(self, now: int) -> None:
        """Those that fit since room became free."""
        # First those for which room is kept, the oldest first as in the scheduler: one that goes
        # elsewhere leaves its room to the others.
        for at, job in sorted(self.queue.kept.items()):
            if self.stage.may_fit_now(job) and self.try_job(at, now):
                self.queue.remove(at)
        self.stage.settle()
        self._place_others(now)

    def _place_others(self, now: int) -> None:
        left = self.queue.firsts()
        while left:
            at = heappop(left)
            job = self.jobs[at]
            if self.stage.may_fit_now(job) and self.try_job(at, now):
                self.queue.remove(at)
                following = self.queue.first(job.shape)
                if following is not None:
                    heappush(left, following)
        self.stage.forget_freed()

    def arrive(self, at: int) -> None:
        job = self.jobs[at]
        self.stage.arrive(job)
        if not self.try_job(at, job.arrives_s):
            self.queue.add(at, job)
        self.look(job.arrives_s)

    def stop(self, now: int) -> None:
        while self.leaving and self.leaving[0][0] <= now:
            self.leave(self.leaving[0][0])
        self.look(now)
        for job in self.queue.all():
            if self.stage.fits_when_empty(job):
                self.note(job, now, runs=False)

    def look(self, now: int) -> None:
        if len(self.queue):
            lapsed = self.stage.lapse(now)
            for key in lapsed:
                self.queue.give_back(key)
            made = self.stage.reserve(self.queue.others(), now)
            for key in made:
                self.queue.keep(key)
                self.record.reservations += 1
            ready = [key for key in made if self.stage.is_ready(key)]
            if lapsed or ready:  # not the next one that arrives: they came before it
                self._place_waiting(now)
            for_all_s = self.stage.places_lapse_s()
            if for_all_s is not None and for_all_s not in self.looks:
                self.looks.add(for_all_s)
                heappush(self.leaving, (for_all_s, _NOBODY))
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
    if trace.window is None:
        # Once no job waits, no more decisions follow.
        while clock.leaving and len(clock.queue):
            clock.leave(clock.leaving[0][0])
    else:
        clock.stop(trace.window.stop_s)
    clock.record.seconds = clock.stage.seconds
    return clock.record
