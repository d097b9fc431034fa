"""How a Job counts its ended pods, each exactly once, and how its status ends. Pure.

Three steps, each of them one write:

1. The uid of the ended pod is written to `status.uncountedTerminatedPods`.
2. Our finalizer is removed from the pod, which may disappear from then on.
3. The uid is removed from the status and the counter is raised, in the same write.

The controller may die between two steps. The next reconcile then sees a uid in the status, and the
pod tells how far it got: with the finalizer, step 2 is repeated; without it (or without the pod),
step 3 follows. Counting before step 2 could count a pod twice; removing the finalizer before step 1
could lose one. The successes of an Indexed Job need no uid, because an index completes only once.
"""

import datetime
from collections.abc import Sequence, Set
from dataclasses import dataclass

from kubeclient.objects import Obj
from localkube.controllers.job_indexes import indexes_of, parse_indexes, text_of_indexes
from localkube.controllers.job_plan import FAILURE, SUCCESS, Outcome, Tally
from localkube.controllers.job_pods import JobPod, Task
from localkube.controllers.pods import stamp

# As in Kubernetes. It bounds the list of uids in the status.
MOST_UNCOUNTED = 500


@dataclass(frozen=True, slots=True)
class Tracking:
    status: Obj  # to be written before the finalizers are removed
    untrack: Sequence[JobPod]
    complete: bool  # False: MOST_UNCOUNTED was reached, the rest follows in the next reconcile


def track(
    task: Task,
    status: Obj,
    pods: Sequence[JobPod],
    found: Tally,
    ending: Outcome | None,
    now: datetime.datetime,
) -> Tracking:
    tracked = {pod.uid for pod in pods if pod.tracked}
    status = counted(status, tracked)
    uncounted = status["uncountedTerminatedPods"]
    before = parse_indexes(status.get("completedIndexes"), task.completions or 0)
    new_indexes: set[int] = set()
    untrack: list[JobPod] = []
    complete = True
    for pod in sorted(pods, key=lambda pod: -1 if pod.index is None else pod.index):
        if not pod.tracked or not _may_untrack(task, pod, found, ending):
            continue
        if len(new_indexes) + sum(map(len, uncounted.values())) >= MOST_UNCOUNTED:
            complete = False
            break
        untrack.append(pod)
        _note(task, pod, ending, uncounted, new_indexes)
    if task.indexed:
        done = before | indexes_of(new_indexes)
        _put(status, "completedIndexes", text_of_indexes(done))
        _put(status, "succeeded", len(done))
        if found.failed_indexes is not None:
            status["failedIndexes"] = text_of_indexes(found.failed_indexes)
    if ending is not None and not ending.known:
        condition = new_condition(ending.kind, ending.reason, ending.message, now)
        status["conditions"] = [*(status.get("conditions") or ()), condition]
    return Tracking(status, untrack, complete)


def _may_untrack(task: Task, pod: JobPod, found: Tally, ending: Outcome | None) -> bool:
    if task.deleted or ending is not None or pod.phase == "Succeeded":
        return True
    if not pod.failed(task):
        return False
    successor_awaited = pod.index is not None and found.delayed.get(pod.index) == pod
    return not successor_awaited


def _note(
    task: Task, pod: JobPod, ending: Outcome | None, uncounted: Obj, new_indexes: set[int]
) -> None:
    in_range = not task.indexed or (pod.index is not None and pod.index < (task.completions or 0))
    succeeded, failed = uncounted.get("succeeded", []), uncounted.get("failed", [])
    if pod.phase == "Succeeded" and pod.uid not in failed:
        if task.indexed:
            if pod.index is not None and in_range:
                new_indexes.add(pod.index)
        elif pod.uid not in succeeded:
            uncounted["succeeded"] = [*succeeded, pod.uid]
    elif _has_failed(task, pod, ending) and pod.uid not in failed and in_range:
        uncounted["failed"] = [*failed, pod.uid]


def _has_failed(task: Task, pod: JobPod, ending: Outcome | None) -> bool:
    """When the whole Job fails, its unfinished pods count as failed, too."""
    lost = ending is not None and ending.kind == FAILURE
    return (pod.failed(task) or lost) and pod.failure.counts


def counted(status: Obj, tracked: Set[str]) -> Obj:
    """Moves the uids of pods without a finalizer into the counters: step 3."""
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
    """The final status; None while a pod is uncounted or terminating."""
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
    """Sets the condition Suspended. A resumed Job gets a new startTime: activeDeadlineSeconds
    counts from there."""
    known = [c for c in status.get("conditions") or () if c["type"] == "Suspended"]
    others = [c for c in status.get("conditions") or () if c["type"] != "Suspended"]
    if suspended == bool(known and known[0]["status"] == "True"):
        return status
    if suspended:
        condition = new_condition("Suspended", "JobSuspended", "Job suspended", now)
        return {**status, "conditions": [*others, condition]}
    condition = new_condition("Suspended", "JobResumed", "Job resumed", now, "False")
    return {**status, "conditions": [*others, condition], "startTime": stamp(now)}


def finished_condition(job: Obj) -> Obj | None:
    """The condition Complete or Failed, if the Job has ended."""
    conditions: list[Obj] = job.get("status", {}).get("conditions") or []
    for condition in conditions:
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return condition
    return None


def _put(status: Obj, field: str, value: object) -> None:
    """Removes the field if the value is zero or empty, as Kubernetes writes it."""
    if value:
        status[field] = value
    else:
        status.pop(field, None)
