"""How ended runs become numbers in the status, none lost and none counted twice. Pure.

A run that has ended is first noted by uid in `uncountedTerminatedPods`; then its finalizer is
removed; only then it becomes part of a counter and the uid goes. Whatever breaks in between is
taken up where it was: a noted run without its finalizer is counted, one with it still has it
removed. Indexed successes need no uid: an index cannot be completed twice.
"""

import datetime
from collections.abc import Sequence, Set
from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.controllers import job_indexes
from localkube.controllers.job_plan import FAILURE, SUCCESS, Outcome, Tally
from localkube.controllers.job_runs import Run, Task
from localkube.controllers.pods import stamp

MOST_UNCOUNTED = 500


@dataclass(frozen=True, slots=True)
class Tracking:
    status: Obj  # to be written before the finalizers are removed
    untrack: Sequence[Run]
    complete: bool  # there was room for all


def track(
    task: Task,
    status: Obj,
    runs: Sequence[Run],
    found: Tally,
    ending: Outcome | None,
    now: datetime.datetime,
) -> Tracking:
    tracked = {run.uid for run in runs if run.tracked}
    status = counted(status, tracked)
    uncounted = status["uncountedTerminatedPods"]
    before = job_indexes.parse(status.get("completedIndexes"), task.completions or 0)
    new_indexes: set[int] = set()
    untrack: list[Run] = []
    complete = True
    for run in sorted(runs, key=lambda run: -1 if run.index is None else run.index):
        if not run.tracked or not _may_untrack(task, run, found, ending):
            continue
        if len(new_indexes) + sum(map(len, uncounted.values())) >= MOST_UNCOUNTED:
            complete = False
            break
        untrack.append(run)
        _note(task, run, ending, uncounted, new_indexes)
    if task.indexed:
        done = before | new_indexes
        _put(status, "completedIndexes", job_indexes.text_of(done))
        _put(status, "succeeded", len(done))
        if found.failed_indexes is not None:
            status["failedIndexes"] = job_indexes.text_of(found.failed_indexes)
    if ending is not None and not ending.known:
        condition = new_condition(ending.kind, ending.reason, ending.message, now)
        status["conditions"] = [*(status.get("conditions") or ()), condition]
    return Tracking(status, untrack, complete)


def _may_untrack(task: Task, run: Run, found: Tally, ending: Outcome | None) -> bool:
    if task.deleted or ending is not None or run.phase == "Succeeded":
        return True
    if not run.failed(task):
        return False
    successor_awaited = run.index is not None and found.delayed.get(run.index) == run
    return not successor_awaited


def _note(
    task: Task, run: Run, ending: Outcome | None, uncounted: Obj, new_indexes: set[int]
) -> None:
    in_range = not task.indexed or (run.index is not None and run.index < (task.completions or 0))
    succeeded, failed = uncounted.get("succeeded", []), uncounted.get("failed", [])
    if run.phase == "Succeeded" and run.uid not in failed:
        if task.indexed:
            if run.index is not None and in_range:
                new_indexes.add(run.index)
        elif run.uid not in succeeded:
            uncounted["succeeded"] = [*succeeded, run.uid]
    elif _has_failed(task, run, ending) and run.uid not in failed and in_range:
        uncounted["failed"] = [*failed, run.uid]


def _has_failed(task: Task, run: Run, ending: Outcome | None) -> bool:
    """When the whole Job has failed, so has every run that had not ended."""
    lost = ending is not None and ending.kind == FAILURE
    return (run.failed(task) or lost) and run.failure.counts


def counted(status: Obj, tracked: Set[str]) -> Obj:
    """The noted runs without a finalizer become part of the counters."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    found = {**status, "uncountedTerminatedPods": {}}
    for kind, uids in uncounted.items():
        left = [uid for uid in uids if uid in tracked]
        if left:
            found["uncountedTerminatedPods"][kind] = left
        if len(left) < len(uids):
            found[kind] = found.get(kind, 0) + len(uids) - len(left)
    return found


def ended(status: Obj, ending: Outcome, now: datetime.datetime) -> Obj | None:
    """The final status, once everything is counted and nobody is left; else None."""
    if any(status.get("uncountedTerminatedPods", {}).values()) or status.get("terminating"):
        return None
    kind = "Complete" if ending.kind == SUCCESS else "Failed"
    condition = new_condition(kind, ending.reason, ending.message, now)
    final = {**status, "conditions": [*(status.get("conditions") or ()), condition]}
    if kind == "Complete":
        final["completionTime"] = stamp(now)
    return final


def new_condition(
    kind: str, reason: str, message: str, now: datetime.datetime, status: str = "True"
) -> Obj:
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": stamp(now),
        "lastTransitionTime": stamp(now),
        "reason": reason,
        "message": message,
    }


def with_suspension(status: Obj, suspended: bool, now: datetime.datetime) -> Obj:
    """Says when the Job was stopped or goes on; a Job that goes on begins anew in time."""
    known = [c for c in status.get("conditions") or () if c["type"] == "Suspended"]
    others = [c for c in status.get("conditions") or () if c["type"] != "Suspended"]
    if suspended == bool(known and known[0]["status"] == "True"):
        return status
    if suspended:
        condition = new_condition("Suspended", "JobSuspended", "Job suspended", now)
        return {**status, "conditions": [*others, condition]}
    condition = new_condition("Suspended", "JobResumed", "Job resumed", now, "False")
    return {**status, "conditions": [*others, condition], "startTime": stamp(now)}


def is_finished(job: Obj) -> bool:
    return any(
        condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
        for condition in job.get("status", {}).get("conditions") or ()
    )


def _put(status: Obj, field: str, value: object) -> None:
    """Zeros and empty texts are not written."""
    if value:
        status[field] = value
    else:
        status.pop(field, None)
