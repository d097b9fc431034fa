"""The pure parts of Jobs: policies, back-off, pods."""

import datetime
from typing import Any

import pytest

from kubeclient.objects import Obj
from localkube.controllers import job_plan, job_pods
from localkube.controllers.job_indexes import indexes_of
from localkube.controllers.job_plan import Failures
from localkube.controllers.job_pods import Failure, JobPod, finished_at, new_indexed_pod, new_pod
from localkube.controllers.pods import deletion_rank, standing_of
from tests.localkube.controllers.samples import template

NOW = datetime.datetime(2026, 11, 15, 12, tzinfo=datetime.UTC)
RANK = deletion_rank(standing_of({"metadata": {"uid": ""}, "spec": {}}), 0, 0.0)


def failed_pod(code: int = 42, container: str = "c", condition: str = "") -> Obj:
    ended = {"name": container, "state": {"terminated": {"exitCode": code}}}
    conditions = [{"type": condition, "status": "True"}] if condition else []
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "status": {"containerStatuses": [ended], "conditions": conditions},
    }


def on_codes(action: str, operator: str, *values: int, **more: str) -> Obj:
    codes = {"operator": operator, "values": list(values), **more}
    return {"action": action, "onExitCodes": codes}


DISRUPTED = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}


@pytest.mark.parametrize(
    ("rule", "pod", "action"),
    [
        (on_codes("Ignore", "In", 42), failed_pod(), "Ignore"),
        (on_codes("Ignore", "In", 1), failed_pod(), "Count"),
        (on_codes("Ignore", "NotIn", 1), failed_pod(), "Ignore"),
        (on_codes("Ignore", "NotIn", 1), failed_pod(0), "Count"),
        (on_codes("FailIndex", "In", 42, containerName="c"), failed_pod(), "FailIndex"),
        (on_codes("FailIndex", "In", 42, containerName="d"), failed_pod(), "Count"),
        (DISRUPTED, failed_pod(condition="DisruptionTarget"), "Ignore"),
        (DISRUPTED, failed_pod(condition="Ready"), "Count"),
    ],
)
def test_the_failure_policy_says_what_a_failure_is(rule: Obj, pod: Obj, action: str) -> None:
    assert job_pods.failure_of(pod, {"rules": [rule]}).action == action


def test_the_first_rule_that_matches_decides_and_says_why() -> None:
    rules = [DISRUPTED, on_codes("FailJob", "In", 42), on_codes("Ignore", "In", 42)]
    assert job_pods.failure_of(failed_pod(), {"rules": rules}) == Failure(
        "FailJob",
        "Container c for pod default/p failed with exit code 42 matching FailJob rule at index 1",
    )
    rule = {**DISRUPTED, "action": "FailJob"}
    disrupted = failed_pod(condition="DisruptionTarget")
    assert job_pods.failure_of(disrupted, {"rules": [rule]}).message == (
        "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0"
    )


@pytest.mark.parametrize(
    ("rule", "succeeded", "met"),
    [
        ({"succeededCount": 2}, {0, 1}, True),
        ({"succeededCount": 2}, {0}, False),
        ({"succeededIndexes": "0"}, {0, 3}, True),
        ({"succeededIndexes": "0-2"}, {0, 1}, False),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, {0, 2}, True),
        ({"succeededIndexes": "0-2", "succeededCount": 2}, {2, 3}, False),
        ({"succeededIndexes": "9"}, {0}, False),
    ],
)
def test_the_success_policy_says_which_indexes_have_to_succeed(
    rule: Obj, succeeded: set[int], met: bool
) -> None:
    found = job_pods.success_by({"rules": [rule]}, indexes_of(succeeded), 5)
    assert found == ("Matched rules at index 0" if met else None)


def run(phase: str, seconds: float, **more: Any) -> JobPod:
    when = NOW + datetime.timedelta(seconds=seconds)
    return JobPod("p", "u", phase, RANK, finished_at=when, **more)


@pytest.mark.parametrize(
    ("count", "wait_s"),
    [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (99, 600)],
)
def test_the_wait_doubles_with_every_failure(count: int, wait_s: float) -> None:
    assert Failures(count, NOW).wait_s(NOW) == wait_s
    assert Failures(count, NOW).wait_s(NOW + datetime.timedelta(seconds=601)) == 0


def test_a_success_resets_the_count_of_failures() -> None:
    known = Failures(3, NOW)
    assert job_plan.failures_after(known, [], []) == known
    assert job_plan.failures_after(known, [run("Succeeded", 1)], []) == job_plan.NO_FAILURES
    later = run("Failed", 5)
    assert job_plan.failures_after(known, [], [later, run("Failed", 2)]) == Failures(
        5, later.finished_at
    )
    both = job_plan.failures_after(known, [run("Succeeded", 3)], [later, run("Failed", 2)])
    assert both == Failures(1, later.finished_at)


def test_all_failures_of_an_index_lengthen_its_back_off() -> None:
    assert job_plan.failures_of_index(None) == job_plan.NO_FAILURES
    failed = run("Failed", 0, failures=1, ignored_failures=2)
    assert job_plan.failures_of_index(failed).count == 4


def test_the_end_of_a_pod_is_that_of_its_last_container() -> None:
    made = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}}
    assert finished_at(made).minute == 0
    deleted = {
        **made,
        "metadata": {
            "deletionTimestamp": "2026-01-01T00:01:30Z",
            "deletionGracePeriodSeconds": 30,
        },
    }
    assert finished_at(deleted).minute == 1
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:02:00Z"}
    assert finished_at({**deleted, "status": {"conditions": [unready]}}).minute == 2
    ends = [
        {"name": n, "state": {"terminated": {"finishedAt": f"2026-01-01T00:0{m}:00Z"}}}
        for n, m in (("a", 3), ("b", 4))
    ]
    status = {"conditions": [unready], "containerStatuses": ends}
    assert finished_at({**deleted, "status": status}).minute == 4
    status["containerStatuses"] = [ends[0], {"name": "b", "state": {"running": {}}}]
    assert finished_at({**deleted, "status": status}).minute == 2


def job(**spec: Any) -> Obj:
    metadata = {"name": "j", "namespace": "default", "uid": "u"}
    return {"metadata": metadata, "spec": {"template": template("j"), **spec}}


def test_a_pod_is_tracked_by_a_finalizer() -> None:
    assert new_pod(job())["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert new_pod(job())["metadata"]["generateName"] == "j-"


def test_an_indexed_pod_knows_its_index() -> None:
    pod = new_indexed_pod(job(), 3, None)
    key = "batch.kubernetes.io/job-completion-index"
    assert pod["metadata"]["generateName"] == "j-3-"
    assert pod["metadata"]["annotations"] == {key: "3"}
    assert pod["metadata"]["labels"] == {"app": "j", key: "3"}
    assert pod["spec"]["hostname"] == "j-3"
    (variable,) = pod["spec"]["containers"][0]["env"]
    assert variable == {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}},
    }


def test_a_long_name_is_cut_so_that_the_index_stays() -> None:
    long = job()
    long["metadata"]["name"] = "x" * 63
    assert new_indexed_pod(long, 12, None)["metadata"]["generateName"] == "x" * 54 + "-12-"


@pytest.mark.parametrize(
    ("replaced", "failures", "ignored"),
    [
        (None, "0", None),
        (run("Failed", 0, failures=1), "2", None),
        (run("Failed", 0, failures=1, failure=Failure("Ignore")), "1", "1"),
        (run("Failed", 0, failures=1, ignored_failures=2), "2", "2"),
    ],
)
def test_a_successor_takes_over_the_count_of_failures(
    replaced: JobPod | None, failures: str, ignored: str | None
) -> None:
    pod = new_indexed_pod(job(backoffLimitPerIndex=5), 0, replaced)
    found = pod["metadata"]["annotations"]
    assert found["batch.kubernetes.io/job-index-failure-count"] == failures
    assert found.get("batch.kubernetes.io/job-index-ignored-failure-count") == ignored
