"""What a Job does next: whether it is over, and which pods to create or to delete. Pure."""

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kubeclient.objects import Obj
from localkube.controllers import job_pods
from localkube.controllers.job_indexes import NO_INDEXES, Indexes, indexes_of, parse_indexes
from localkube.controllers.job_pods import JobPod, Task
from localkube.controllers.pods import parse_time

FIRST_S, LONGEST_S = 10.0, 600.0  # backoff after failures: 10 s, 20 s, 40 s, ..., 10 min


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed pods in a row, since the last success."""

    count: int = 0
    last: datetime.datetime | None = None

    def wait_s(self, now: datetime.datetime) -> float:
        if not self.count or self.last is None:
            return 0.0
        delay_s: float = min(FIRST_S * 2 ** min(self.count - 1, 10), LONGEST_S)
        return max(0.0, delay_s - (now - self.last).total_seconds())


NO_FAILURES = Failures()


def failures_after(
    known: Failures, succeeded: Sequence[JobPod], failed: Sequence[JobPod]
) -> Failures:
    """`known`, and the pods that have ended since."""
    if not failed:
        return NO_FAILURES if succeeded else known
    last = max(pod.finished_at for pod in failed)
    if not succeeded:
        return Failures(known.count + len(failed), last)
    success = max(pod.finished_at for pod in succeeded)
    later = [pod for pod in failed if pod.finished_at > success]
    return Failures(len(later), last) if later else NO_FAILURES


def failures_of_index(last: JobPod | None) -> Failures:
    """The failures of one index, from its last failed pod."""
    if last is None:
        return NO_FAILURES
    return Failures(last.failures + last.ignored_failures + 1, last.finished_at)


BURST = 500  # pods created or deleted in one reconcile
SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the Job ends. Written first as an interim condition (SUCCESS or FAILURE); the final one
    (Complete or Failed) follows when all pods are counted."""

    kind: str
    reason: str
    message: str
    known: bool = False  # the interim condition is in the status already


COMPLETIONS_REACHED = Outcome(
    SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods"
)


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts that all decisions of one reconcile start from."""

    active: Sequence[JobPod]
    leaving: int  # terminating, and not ended yet
    new_succeeded: Sequence[JobPod]  # ended, and not in the status yet
    new_failed: Sequence[JobPod]
    succeeded: int
    failed: int
    succeeded_indexes: Indexes = NO_INDEXES
    failed_indexes: Indexes | None = None  # None: failures are not counted by index
    # By index, the failed pod that keeps its finalizer until its replacement exists: the number of
    # failures of an index is carried on from pod to pod in annotations.
    delayed: Mapping[int, JobPod] = field(default_factory=dict)


def _in_range(pod: JobPod, task: Task) -> bool:
    if not task.indexed:
        return True
    return pod.index is not None and pod.index < (task.completions or 0)


def tally(task: Task, status: Obj, pods: Sequence[JobPod]) -> Tally:
    uncounted = status.get("uncountedTerminatedPods") or {}
    succeeded_uids = set(uncounted.get("succeeded") or ())
    failed_uids = set(uncounted.get("failed") or ())
    open_pods = [pod for pod in pods if pod.tracked and _in_range(pod, task)]
    new_succeeded = [
        pod for pod in open_pods if pod.phase == "Succeeded" and pod.uid not in succeeded_uids
    ]
    new_failed = [pod for pod in open_pods if pod.failed(task) and pod.uid not in failed_uids]
    counted = sum(pod.failure.counts for pod in new_failed)
    found = Tally(
        active=[pod for pod in pods if pod.active],
        leaving=sum(pod.leaving for pod in pods),
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=status.get("succeeded", 0) + len(new_succeeded) + len(succeeded_uids),
        failed=status.get("failed", 0) + counted + len(failed_uids),
    )
    return _by_index(task, status, open_pods, found) if task.indexed else found


def _by_index(task: Task, status: Obj, open_pods: Sequence[JobPod], found: Tally) -> Tally:
    completions = task.completions or 0
    done = parse_indexes(status.get("completedIndexes"), completions) | indexes_of(
        pod.index for pod in open_pods if pod.phase == "Succeeded" and pod.index is not None
    )
    failed: Indexes | None = None
    delayed: dict[int, JobPod] = {}
    if task.backoff_limit_per_index is not None:
        limit = task.backoff_limit_per_index
        failed = parse_indexes(status.get("failedIndexes"), completions) | indexes_of(
            pod.index
            for pod in open_pods
            if pod.index is not None and pod.failed(task) and _ends_index(pod, limit)
        )
        delayed = _delayed(task, open_pods, done | failed, found.active)
    return Tally(
        found.active,
        found.leaving,
        found.new_succeeded,
        found.new_failed,
        len(done),
        found.failed,
        done,
        failed,
        delayed,
    )


def _ends_index(pod: JobPod, limit: int) -> bool:
    if pod.failure.action == job_pods.FAIL_INDEX:
        return True
    return pod.failure.counts and pod.failures >= limit


def _delayed(
    task: Task, open_pods: Sequence[JobPod], over: Indexes, active: Sequence[JobPod]
) -> dict[int, JobPod]:
    busy = {pod.index for pod in active}
    found: dict[int, JobPod] = {}
    for pod in open_pods:
        if pod.index is None or not pod.failed(task):
            continue
        if pod.index in over or pod.index in busy:
            continue
        known = found.get(pod.index)
        if known is None or _later(pod) >= _later(known):
            found[pod.index] = pod
    return found


def _later(pod: JobPod) -> tuple[int, datetime.datetime]:
    return pod.failures + pod.ignored_failures, pod.finished_at


# -- is the Job over? --------------------------------------------------------------------------


def outcome(
    task: Task, status: Obj, pods: Sequence[JobPod], found: Tally, now: datetime.datetime
) -> Outcome | None:
    """None: the Job goes on. An outcome in the conditions is final; failure goes before success."""
    known = _known_outcome(status)
    if known is not None:
        return known
    for pod in pods:
        if pod.failed(task) and pod.failure.message:
            return Outcome(FAILURE, "PodFailurePolicy", pod.failure.message)
    if found.failed > task.backoff_limit or _restarted_too_often(task, pods):
        text = "Job has reached the specified backoff limit"
        return Outcome(FAILURE, "BackoffLimitExceeded", text)
    if seconds_to_deadline(task, status, now) == 0:
        text = "Job was active longer than specified deadline"
        return Outcome(FAILURE, "DeadlineExceeded", text)
    return _outcome_by_index(task, found) if task.indexed else None


def _known_outcome(status: Obj) -> Outcome | None:
    conditions = {c["type"]: c for c in status.get("conditions") or () if c["status"] == "True"}
    for kind in (SUCCESS, FAILURE):
        if kind in conditions:
            condition = conditions[kind]
            words = condition.get("reason", ""), condition.get("message", "")
            return Outcome(kind, *words, known=True)
    return None


def _restarted_too_often(task: Task, pods: Sequence[JobPod]) -> bool:
    if not task.restarts_containers:
        return False
    restarts = sum(pod.restarts for pod in pods if pod.phase in ("Running", "Pending"))
    return restarts > 0 if task.backoff_limit == 0 else restarts >= task.backoff_limit


def seconds_to_deadline(task: Task, status: Obj, now: datetime.datetime) -> float | None:
    if task.deadline_s is None or task.suspended or not status.get("startTime"):
        return None
    since = parse_time(status["startTime"])
    return max(0.0, task.deadline_s - (now - since).total_seconds())


def _outcome_by_index(task: Task, found: Tally) -> Outcome | None:
    completions = task.completions or 0
    failed = found.failed_indexes
    if failed:
        if task.max_failed_indexes is not None and len(failed) > task.max_failed_indexes:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return Outcome(FAILURE, "MaxFailedIndexesExceeded", text)
        if len(failed) + found.succeeded >= completions:
            return Outcome(FAILURE, "FailedIndexes", "Job has failed indexes")
    rule = job_pods.success_by(task.success_policy, found.succeeded_indexes, completions)
    return Outcome(SUCCESS, "SuccessPolicy", rule) if rule else None


def is_complete(task: Task, found: Tally, active: int) -> bool:
    wanted = 1 if task.completions is None else task.completions
    return active == 0 and found.succeeded >= wanted


# -- which pods to create or delete ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Staffing:
    """Pods to delete or to create, never both in one reconcile."""

    delete: Sequence[JobPod] = ()
    create: int = 0
    indexes: Sequence[int] = ()  # of the pods to create
    wait_s: float = 0.0  # backoff: nothing is created before


def staffing(
    task: Task, pods: Sequence[JobPod], found: Tally, failures: Failures, now: datetime.datetime
) -> Staffing:
    active = len(found.active)
    if task.suspended:
        return Staffing(delete=found.active)
    wanted = _wanted(task, found)
    surplus = _surplus(task, found.active, max(0, active - wanted))
    if surplus:
        return Staffing(delete=surplus[:BURST])
    leaving = found.leaving if task.only_replaces_failed else 0
    missing = min(wanted - leaving - active, BURST)
    if missing <= 0:
        return Staffing()
    if task.backoff_limit_per_index is None:
        wait_s = failures.wait_s(now)
        if wait_s > 0:
            return Staffing(wait_s=wait_s)
    if not task.indexed:
        return Staffing(create=missing)
    indexes = _pending_indexes(task, pods, found, missing)
    if task.backoff_limit_per_index is not None:
        return _staffing_by_index(indexes, found, now)
    return Staffing(create=len(indexes), indexes=indexes)


def _wanted(task: Task, found: Tally) -> int:
    if task.completions is None:
        # A work queue: after the first success nothing is created, and what runs may finish.
        return len(found.active) if found.succeeded else task.parallelism
    return max(0, min(task.completions - found.succeeded, task.parallelism))


def _surplus(task: Task, active: Sequence[JobPod], least: int) -> list[JobPod]:
    """Pods without a valid index, all but one pod of each index, and then as many as needed."""
    ranked = sorted(active, key=lambda pod: pod.rank)
    surplus: list[JobPod] = []
    if task.indexed:
        seen: set[int] = set()
        for pod in reversed(ranked):  # of each index, the pod with the highest rank stays
            if pod.index is None or not _in_range(pod, task) or pod.index in seen:
                surplus.append(pod)
            else:
                seen.add(pod.index)
    left = [pod for pod in ranked if pod not in surplus]
    return surplus + left[: max(0, least - len(surplus))]


def _pending_indexes(task: Task, pods: Sequence[JobPod], found: Tally, count: int) -> list[int]:
    busy = {pod.index for pod in found.active}
    if task.only_replaces_failed:
        busy |= {pod.index for pod in pods if pod.leaving}
    over = found.succeeded_indexes | (found.failed_indexes or NO_INDEXES)
    free = (index for index in over.missing(task.completions or 0) if index not in busy)
    return list(itertools.islice(free, count))


def _staffing_by_index(indexes: Sequence[int], found: Tally, now: datetime.datetime) -> Staffing:
    waits = {i: failures_of_index(found.delayed.get(i)).wait_s(now) for i in indexes}
    free = [index for index, wait_s in waits.items() if wait_s == 0]
    if free:
        return Staffing(create=len(free), indexes=free)
    return Staffing(wait_s=min(waits.values(), default=0.0))
