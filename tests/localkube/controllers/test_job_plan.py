"""The decisions and the counting of Jobs: examples, and simulations of whole Jobs."""

import datetime
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.controllers import job_plan, job_tracking
from localkube.controllers.job_plan import (
    COMPLETIONS_REACHED,
    Outcome,
    Staffing,
    is_complete,
    outcome,
    staffing,
    tally,
)
from localkube.controllers.job_pods import Failure, JobPod, Task
from localkube.controllers.pods import Standing, deletion_rank

NOW = datetime.datetime(2026, 11, 15, 12, tzinfo=datetime.UTC)
TASK = Task(
    completions=3,
    parallelism=3,
    backoff_limit=6,
    backoff_limit_per_index=None,
    max_failed_indexes=None,
    indexed=False,
    suspended=False,
    deadline_s=None,
    only_replaces_failed=False,
    restarts_containers=False,
    success_policy=None,
    deleted=False,
)
INDEXED = replace(TASK, indexed=True)


def run(name: str, phase: str = "Running", **more: Any) -> JobPod:
    progress = {"Pending": 0, "Running": 2}.get(phase, 2)
    rank = deletion_rank(Standing(name, True, progress, None, 0, 0, 0.0), 0, 0.0)
    return JobPod(name, name, phase, rank, **more)


def staff(task: Task, *runs: JobPod, status: Obj | None = None) -> Staffing:
    found = tally(task, status or {}, runs)
    return staffing(task, runs, found, job_plan.NO_FAILURES, NOW)


def judge(task: Task, *runs: JobPod, status: Obj | None = None) -> Outcome | None:
    return outcome(task, status or {}, runs, tally(task, status or {}, runs), NOW)


def test_no_more_pods_start_than_parallelism_and_completions_need() -> None:
    assert staff(TASK).create == 3
    assert staff(TASK, run("a")).create == 2
    assert staff(TASK, status={"succeeded": 2}).create == 1
    assert staff(replace(TASK, completions=None), status={"succeeded": 1}).create == 0


def test_surplus_pods_that_are_not_running_are_deleted_first() -> None:
    task = replace(TASK, parallelism=1)
    assert [r.name for r in staff(task, run("a"), run("b", "Pending")).delete] == ["b"]


def test_one_pod_per_index_stays_and_none_without_an_index() -> None:
    runs = [run("a", index=0), run("b", "Pending", index=0), run("c"), run("d", index=7)]
    assert {r.name for r in staff(INDEXED, *runs).delete} == {"b", "c", "d"}


def test_indexes_are_filled_from_below() -> None:
    status = {"completedIndexes": "1"}
    assert staff(INDEXED, run("a", index=0), status=status).indexes == [2]


def test_an_index_on_its_way_out_is_replaced_at_once_or_after() -> None:
    leaving = run("a", index=0, terminating=True)
    assert staff(INDEXED, leaving).indexes == [0, 1, 2]
    only_failed = replace(INDEXED, only_replaces_failed=True)
    assert staff(only_failed, leaving).indexes == [1, 2]


def test_an_ended_pod_counts_once_whether_noted_or_not() -> None:
    ended = [run("a", "Succeeded"), run("b", "Failed"), run("c", "Failed", tracked=False)]
    status = {"failed": 1, "uncountedTerminatedPods": {"succeeded": ["a"]}}
    found = tally(TASK, status, ended)
    assert (found.succeeded, found.failed) == (1, 2)
    assert [r.name for r in found.new_failed] == ["b"]


def test_failures_that_are_ignored_do_not_count() -> None:
    ignored = run("a", "Failed", failure=Failure("Ignore"))
    assert tally(TASK, {}, [ignored]).failed == 0
    assert judge(replace(TASK, backoff_limit=0), ignored) is None


@pytest.mark.parametrize(
    ("task", "runs", "status", "reason"),
    [
        (replace(TASK, backoff_limit=0), [run("a", "Failed")], {}, "BackoffLimitExceeded"),
        (
            replace(TASK, deadline_s=60),
            [],
            {"startTime": "2026-11-15T11:59:00Z"},
            "DeadlineExceeded",
        ),
        (TASK, [run("a", "Failed", failure=Failure("FailJob", "why"))], {}, "PodFailurePolicy"),
        (
            replace(TASK, restarts_containers=True, backoff_limit=2),
            [run("a", restarts=1), run("b", restarts=1)],
            {},
            "BackoffLimitExceeded",
        ),
        (
            replace(INDEXED, backoff_limit_per_index=0),
            [run("a", "Failed", index=0)],
            {"completedIndexes": "1,2"},
            "FailedIndexes",
        ),
        (
            replace(INDEXED, backoff_limit_per_index=0, max_failed_indexes=0),
            [run("a", "Failed", index=0)],
            {},
            "MaxFailedIndexesExceeded",
        ),
        (
            replace(INDEXED, success_policy={"rules": [{"succeededCount": 1}]}),
            [run("a", "Succeeded", index=2)],
            {},
            "SuccessPolicy",
        ),
    ],
)
def test_a_job_ends_for_a_reason(task: Task, runs: list[JobPod], status: Obj, reason: str) -> None:
    found = judge(task, *runs, status=status)
    assert found is not None
    assert found.reason == reason


def test_an_outcome_in_the_conditions_is_final() -> None:
    condition = {"type": "FailureTarget", "status": "True", "reason": "r", "message": "m"}
    found = judge(TASK, run("a", "Succeeded"), status={"conditions": [condition]})
    assert found == Outcome("FailureTarget", "r", "m", known=True)


def test_noted_pods_are_counted_when_their_finalizer_is_gone() -> None:
    status = {"failed": 1, "uncountedTerminatedPods": {"failed": ["a", "b"], "succeeded": ["c"]}}
    found = job_tracking.counted(status, {"b", "c"})
    assert found == {
        "failed": 2,
        "uncountedTerminatedPods": {"failed": ["b"], "succeeded": ["c"]},
    }


class World:
    """A simulated Job and its pods. Every reconcile may be interrupted after any write."""

    def __init__(self, task: Task, order: random.Random) -> None:
        self.task = task
        self.order = order
        self.status: Obj = {"uncountedTerminatedPods": {}}
        self.runs: dict[str, JobPod] = {}
        self.ended: dict[str, str] = {}  # uid -> the phase in which the pod really ended
        self.serial = 0

    def breaks(self) -> bool:
        return self.order.random() < 0.2

    def look(self) -> None:
        runs = list(self.runs.values())
        found = tally(self.task, self.status, runs)
        ending = outcome(self.task, self.status, runs, found, NOW)
        active = len(found.active)
        if ending is not None:
            for each in found.active:
                self.end(each, "Failed")
                active -= 1
        else:
            active = self.staff(runs, found, active)
            if is_complete(self.task, found, active):
                ending = COMPLETIONS_REACHED
        self.count(runs, found, ending)

    def staff(self, runs: list[JobPod], found: Any, active: int) -> int:
        todo = staffing(self.task, runs, found, job_plan.NO_FAILURES, NOW)
        indexes: list[int | None] = [*todo.indexes] or [None] * todo.create
        for index in indexes:
            self.serial += 1
            name = f"r{self.serial}"
            self.runs[name] = run(name, index=index)
        return active + len(indexes)

    def count(self, runs: list[JobPod], found: Any, ending: Outcome | None) -> None:
        tracking = job_tracking.track(self.task, self.status, runs, found, ending, NOW)
        if self.breaks():
            return
        self.status = tracking.status
        for each in tracking.untrack:
            if self.breaks():
                return
            self.runs[each.uid] = replace(self.runs[each.uid], tracked=False)
        tracked = {each.uid for each in self.runs.values() if each.tracked}
        status = job_tracking.counted(self.status, tracked)
        if ending is not None and tracking.complete:
            status = job_tracking.ended(status, ending, NOW) or status
        if not self.breaks():
            self.status = status

    def end(self, each: JobPod, how: str) -> None:
        if each.uid not in self.ended:
            self.ended[each.uid] = how
            self.runs[each.uid] = replace(self.runs[each.uid], phase=how)

    @property
    def over(self) -> bool:
        return job_tracking.finished_condition({"status": self.status}) is not None


tasks = st.builds(
    replace,
    st.sampled_from([TASK, INDEXED]),
    completions=st.integers(1, 4),
    parallelism=st.integers(1, 4),
    backoff_limit=st.integers(0, 3),
)


@given(tasks, st.integers(0, 99).map(random.Random))
def test_every_pod_is_counted_exactly_once_whatever_breaks(
    task: Task, order: random.Random
) -> None:
    world = World(task, order)
    for _ in range(400):
        world.look()
        if world.over:
            break
        going = [each for each in world.runs.values() if each.active]
        if going:
            world.end(order.choice(going), order.choice(["Succeeded", "Succeeded", "Failed"]))
    assert world.over, "the job never ends"
    succeeded = {uid for uid, how in world.ended.items() if how == "Succeeded"}
    failed = set(world.ended) - succeeded
    assert world.status.get("failed", 0) == len(failed)
    if task.indexed:
        done = {world.runs[uid].index for uid in succeeded}
        assert world.status.get("succeeded", 0) == len(done)
    else:
        assert world.status.get("succeeded", 0) == len(succeeded)
    assert not any(each.tracked for each in world.runs.values())
    kinds = [condition["type"] for condition in world.status["conditions"]]
    assert kinds in (["SuccessCriteriaMet", "Complete"], ["FailureTarget", "Failed"])
