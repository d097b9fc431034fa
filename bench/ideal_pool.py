"""What waits of large jobs cost the others if a cluster were one large machine: a measure for kept
room (docs/packing.md).

    python -m bench.ideal_pool 95 --seeds 6

All cards are in one pool, so nothing is lost between machines. Jobs with several cards are served
first once they have waited for so long (`after`); from then on no other job starts, or only those
start that delay it in no way. For that, running times are known exactly.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from bench.report import aligned
from gpupool.replay.load import at_load
from gpupool.replay.synthetic import large_trace
from gpupool.replay.timed_stage import TimedJob, jobs_of
from gpupool.replay.trace import Window

_NODES = 64
_CARD = 1_000
_AFTER_S = (1_000, 3_000, 5_000, 8_000, 12_000, 16_000, 30_000)
_NEVER = 10**9


class Waits(NamedTuple):
    mean_s: float
    several_mean_s: float
    several_p99_s: float


@dataclass(slots=True)
class _Pool:
    free: int
    after_s: int
    lets_short_ones_in: bool
    waiting: list[TimedJob] = field(default_factory=list)
    leaving: list[tuple[int, int, int]] = field(default_factory=list)  # end, number, cards
    waits: list[tuple[TimedJob, int]] = field(default_factory=list)

    def until(self, now: int) -> None:
        while self.leaving and self.leaving[0][0] <= now:
            end, _, cards = heappop(self.leaving)
            self.free += cards
            self.serve(end)

    def serve(self, now: int) -> None:
        """Those that have waited for long first, then in the order of arrival."""
        late = [job for job in self.waiting if self._is_late(job, now)]
        others = [job for job in self.waiting if not self._is_late(job, now)]
        held: tuple[int, int] | None = None  # until when, and what is to spare then
        left: list[TimedJob] = []
        for job in (*late, *others):
            if held is not None and job.gpu_milli:
                held = self._beside(job, now, held, left)
            elif job.gpu_milli <= self.free:
                self._start(job, now)
            else:
                left.append(job)
                held = self._room_for(job) if self._is_late(job, now) else None
        self.waiting = sorted(left, key=lambda job: job.arrives_s)

    def _is_late(self, job: TimedJob, now: int) -> bool:
        return job.gpu_milli > _CARD and now - job.arrives_s > self.after_s

    def _room_for(self, job: TimedJob) -> tuple[int, int]:
        free = self.free
        for end, _, cards in sorted(self.leaving):
            free += cards
            if free >= job.gpu_milli:
                return end, free - job.gpu_milli
        raise AssertionError("a job that is larger than the pool")

    def _beside(
        self, job: TimedJob, now: int, held: tuple[int, int], left: list[TimedJob]
    ) -> tuple[int, int]:
        end, spare = held
        is_short = now + (job.runs_s or 0) <= end
        if (
            self.lets_short_ones_in
            and job.gpu_milli <= self.free
            and (is_short or job.gpu_milli <= spare)
        ):
            self._start(job, now)
            return held if is_short else (end, spare - job.gpu_milli)
        left.append(job)
        return held

    def _start(self, job: TimedJob, now: int) -> None:
        self.free -= job.gpu_milli
        heappush(self.leaving, (now + (job.runs_s or 0), len(self.waits), job.gpu_milli))
        self.waits.append((job, now - job.arrives_s))


def waits_in(
    jobs: Sequence[TimedJob], cards: int, window: Window, after_s: int, *, lets_short_ones_in: bool
) -> Waits:
    pool = _Pool(cards, after_s, lets_short_ones_in)
    for job in jobs:
        pool.until(job.arrives_s)
        pool.waiting.append(job)
        pool.serve(job.arrives_s)
    pool.until(window.stop_s)
    pool.waits += [(job, window.stop_s - job.arrives_s) for job in pool.waiting]
    counted = [
        (pod.gpus, waited)
        for job, waited in pool.waits
        if window.begin_s <= job.arrives_s < window.end_s
        for pod in job.requests
    ]
    several = sorted(waited for gpus, waited in counted if sum(ask.whole for ask in gpus) > 1)
    return Waits(
        statistics.fmean(waited for _, waited in counted),
        statistics.fmean(several),
        several[len(several) * 99 // 100],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Waits of large jobs in one pool of cards.")
    parser.add_argument("load", type=float, help="percent of the cards that pods ask for")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    streams = [at_load(large_trace(_NODES, seed), given.load / 100) for seed in range(given.seeds)]
    titles = ("served first after", "others meanwhile", "mean", "mean, several", "p99, several")
    rows: list[tuple[str, ...]] = [titles]
    for after_s in (_NEVER, *_AFTER_S):
        print(f"after {after_s:,} s ...", file=sys.stderr, flush=True)
        for short in (False, True) if after_s < _NEVER else (False,):
            found = [
                waits_in(jobs_of(s), s.capacity_milli, s.window, after_s, lets_short_ones_in=short)
                for s in streams
                if s.window is not None
            ]
            when = f"{after_s:,} s" if after_s < _NEVER else "never"
            figures = (f"{statistics.fmean(each):,.0f} s" for each in zip(*found, strict=True))
            rows.append((when, "short ones" if short else "none", *figures))
    print(aligned(rows))


if __name__ == "__main__":
    main()
