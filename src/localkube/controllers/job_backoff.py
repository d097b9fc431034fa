"""How long a Job waits after failures: 10 s, 20 s, 40 s and so on, up to ten minutes. Pure."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from localkube.controllers.job_runs import Run

FIRST_S, LONGEST_S = 10.0, 600.0


@dataclass(frozen=True, slots=True)
class Failures:
    """In a row, since the last success."""

    count: int = 0
    last: datetime.datetime | None = None

    def wait_s(self, now: datetime.datetime) -> float:
        if not self.count or self.last is None:
            return 0.0
        delay_s: float = min(FIRST_S * 2 ** min(self.count - 1, 10), LONGEST_S)
        return max(0.0, delay_s - (now - self.last).total_seconds())


NONE = Failures()


def after(known: Failures, succeeded: Sequence[Run], failed: Sequence[Run]) -> Failures:
    """With the runs that have ended since."""
    if not failed:
        return NONE if succeeded else known
    last = max(run.finished_at for run in failed)
    if not succeeded:
        return Failures(known.count + len(failed), last)
    success = max(run.finished_at for run in succeeded)
    later = [run for run in failed if run.finished_at > success]
    return Failures(len(later), last) if later else NONE


def of_index(last: Run | None) -> Failures:
    """Of one index, by its last failed run."""
    if last is None:
        return NONE
    return Failures(last.failures + last.ignored_failures + 1, last.finished_at)
