"""What a Job does next: whether it is over, and which runs to begin or to end. Pure."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kubeclient.objects import Obj
from localkube.controllers import job_backoff, job_indexes, job_policies
from localkube.controllers.job_backoff import Failures
from localkube.controllers.job_indexes import Indexes
from localkube.controllers.job_runs import Run, Task
from localkube.controllers.pods import parse_time

BURST = 500  # runs begun or ended in one go
SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the Job ends. First as an intent (SUCCESS or FAILURE), until all is counted."""

    kind: str
    reason: str
    message: str
    known: bool = False  # it is written in the conditions already


COMPLETIONS_REACHED = Outcome(
    SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods"
)


@dataclass(frozen=True, slots=True)
class Tally:
    """Where the Job stands."""

    active: Sequence[Run]
    leaving: int
    new_succeeded: Sequence[Run]  # ended, and not in the status yet
    new_failed: Sequence[Run]
    succeeded: int
    failed: int
    succeeded_indexes: Indexes = job_indexes.NONE
    failed_indexes: Indexes | None = None  # None: failures are not counted by index
    # By index, the failed run that stays until its successor has taken over its count.
    delayed: Mapping[int, Run] = field(default_factory=dict)


def _in_range(run: Run, task: Task) -> bool:
    if not task.indexed:
        return True
    return run.index is not None and run.index < (task.completions or 0)


def tally(task: Task, status: Obj, runs: Sequence[Run]) -> Tally:
    uncounted = status.get("uncountedTerminatedPods") or {}
    succeeded_uids = uncounted.get("succeeded") or []
    failed_uids = uncounted.get("failed") or []
    open_runs = [run for run in runs if run.tracked and _in_range(run, task)]
    new_succeeded = [
        run for run in open_runs if run.phase == "Succeeded" and run.uid not in succeeded_uids
    ]
    new_failed = [run for run in open_runs if run.failed(task) and run.uid not in failed_uids]
    counted = sum(run.failure.counts for run in new_failed)
    found = Tally(
        active=[run for run in runs if run.active],
        leaving=sum(run.leaving for run in runs),
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=status.get("succeeded", 0) + len(new_succeeded) + len(succeeded_uids),
        failed=status.get("failed", 0) + counted + len(failed_uids),
    )
    return _by_index(task, status, open_runs, found) if task.indexed else found


def _by_index(task: Task, status: Obj, open_runs: Sequence[Run], found: Tally) -> Tally:
    completions = task.completions or 0
    done = job_indexes.parse(status.get("completedIndexes"), completions) | {
        run.index for run in open_runs if run.phase == "Succeeded" and run.index is not None
    }
    failed: Indexes | None = None
    delayed: dict[int, Run] = {}
    if task.backoff_limit_per_index is not None:
        limit = task.backoff_limit_per_index
        failed = job_indexes.parse(status.get("failedIndexes"), completions) | {
            run.index
            for run in open_runs
            if run.index is not None and run.failed(task) and _ends_index(run, limit)
        }
        delayed = _delayed(task, open_runs, done | failed, found.active)
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


def _ends_index(run: Run, limit: int) -> bool:
    if run.failure.action == job_policies.FAIL_INDEX:
        return True
    return run.failure.counts and run.failures >= limit


def _delayed(
    task: Task, open_runs: Sequence[Run], over: Indexes, active: Sequence[Run]
) -> dict[int, Run]:
    taken = over | {run.index for run in active}
    found: dict[int, Run] = {}
    for run in open_runs:
        if run.index is None or run.index in taken or not run.failed(task):
            continue
        known = found.get(run.index)
        if known is None or _later(run) >= _later(known):
            found[run.index] = run
    return found


def _later(run: Run) -> tuple[int, datetime.datetime]:
    return run.failures + run.ignored_failures, run.finished_at


# -- is it over? -------------------------------------------------------------------------------


def outcome(
    task: Task, status: Obj, runs: Sequence[Run], found: Tally, now: datetime.datetime
) -> Outcome | None:
    """None: it goes on. What was decided before stays decided; failure goes before success."""
    known = _known_outcome(status)
    if known is not None:
        return known
    for run in runs:
        if run.failed(task) and run.failure.message:
            return Outcome(FAILURE, "PodFailurePolicy", run.failure.message)
    if found.failed > task.backoff_limit or _restarted_too_often(task, runs):
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


def _restarted_too_often(task: Task, runs: Sequence[Run]) -> bool:
    if not task.restarts_containers:
        return False
    restarts = sum(run.restarts for run in runs if run.phase in ("Running", "Pending"))
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
    rule = job_policies.success_by(task.success_policy, found.succeeded_indexes, completions)
    return Outcome(SUCCESS, "SuccessPolicy", rule) if rule else None


def is_complete(task: Task, found: Tally, active: int) -> bool:
    wanted = 1 if task.completions is None else task.completions
    return active == 0 and found.succeeded >= wanted


# -- who runs? ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Staffing:
    """Either some go or some come, never both at a time."""

    end: Sequence[Run] = ()
    begin: int = 0
    indexes: Sequence[int] = ()  # of those to begin
    wait_s: float = 0.0  # nobody may begin before


def staffing(
    task: Task, runs: Sequence[Run], found: Tally, failures: Failures, now: datetime.datetime
) -> Staffing:
    active = len(found.active)
    if task.suspended:
        return Staffing(end=found.active)
    wanted = _wanted(task, found)
    surplus = _surplus(task, found.active, max(0, active - wanted))
    if surplus:
        return Staffing(end=surplus[:BURST])
    leaving = found.leaving if task.only_replaces_failed else 0
    missing = min(wanted - leaving - active, BURST)
    if missing <= 0:
        return Staffing()
    if task.backoff_limit_per_index is None:
        wait_s = failures.wait_s(now)
        if wait_s > 0:
            return Staffing(wait_s=wait_s)
    if not task.indexed:
        return Staffing(begin=missing)
    indexes = _pending_indexes(task, runs, found, missing)
    if task.backoff_limit_per_index is not None:
        return _staffing_by_index(indexes, found, now)
    return Staffing(begin=len(indexes), indexes=indexes)


def _wanted(task: Task, found: Tally) -> int:
    if task.completions is None:
        # One success is enough; those that run then may end in peace.
        return len(found.active) if found.succeeded else task.parallelism
    return max(0, min(task.completions - found.succeeded, task.parallelism))


def _surplus(task: Task, active: Sequence[Run], least: int) -> list[Run]:
    """Of an index all but one go, and runs without a fitting index; then as many as needed."""
    ranked = sorted(active, key=lambda run: run.rank)
    surplus: list[Run] = []
    if task.indexed:
        seen: set[int] = set()
        for run in reversed(ranked):  # the one that is missed most stays
            if run.index is None or not _in_range(run, task) or run.index in seen:
                surplus.append(run)
            else:
                seen.add(run.index)
    left = [run for run in ranked if run not in surplus]
    return surplus + left[: max(0, least - len(surplus))]


def _pending_indexes(task: Task, runs: Sequence[Run], found: Tally, count: int) -> list[int]:
    busy = {run.index for run in found.active}
    if task.only_replaces_failed:
        busy |= {run.index for run in runs if run.leaving}
    over = found.succeeded_indexes | (found.failed_indexes or job_indexes.NONE)
    pending: list[int] = []
    for index in range(task.completions or 0):
        if len(pending) == count:
            break
        if index not in over and index not in busy:
            pending.append(index)
    return pending


def _staffing_by_index(indexes: Sequence[int], found: Tally, now: datetime.datetime) -> Staffing:
    waits = {i: job_backoff.of_index(found.delayed.get(i)).wait_s(now) for i in indexes}
    free = [index for index, wait_s in waits.items() if wait_s == 0]
    if free:
        return Staffing(begin=len(free), indexes=free)
    return Staffing(wait_s=min(waits.values(), default=0.0))
