"""Jobs on a real API server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import JOBS, PODS
from localkube.controllers import job
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.job_subject import (
    INDEX,
    conditions,
    create,
    end,
    indexes,
    open_pods,
    status,
)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, job.controller(), job.TTL_CONTROLLER) as desk:
        yield desk


async def test_a_job_runs_once_and_is_complete(desk: Desk) -> None:
    await create(desk)
    (pod,) = await desk.all(PODS)
    uid = (await desk.get(JOBS, "j"))["metadata"]["uid"]
    assert pod["metadata"]["labels"] == {
        "app": "j",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    started = (await status(desk))["startTime"]
    assert await status(desk) == {
        "active": 1,
        "ready": 0,
        "startTime": started,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    await desk.run_pods()
    await desk.settle()
    assert (await status(desk))["ready"] == 1
    await end(desk, "Succeeded")
    found = await status(desk)
    assert found == {
        "ready": 0,
        "succeeded": 1,
        "startTime": started,
        "completionTime": found["completionTime"],
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "conditions": found["conditions"],
    }
    words = ("CompletionsReached", "Reached expected number of succeeded pods")
    assert await conditions(desk) == {"SuccessCriteriaMet": words, "Complete": words}
    (pod,) = await desk.all(PODS)
    assert "finalizers" not in pod["metadata"]
    name = pod["metadata"]["name"]
    assert desk.events() == [f"Created pod: {name}", "Job completed"]


async def test_no_more_pods_start_than_completions_need(desk: Desk) -> None:
    await create(desk, completions=3, parallelism=2)
    assert len(await open_pods(desk)) == 2
    await end(desk, "Succeeded")
    assert len(await open_pods(desk)) == 2
    await end(desk, "Succeeded")
    assert len(await open_pods(desk)) == 1
    await end(desk, "Succeeded")
    assert "Complete" in await conditions(desk)
    assert (await status(desk))["succeeded"] == 3


async def test_without_completions_one_success_is_enough_and_other_pods_may_finish(
    desk: Desk,
) -> None:
    await create(desk, parallelism=3)
    await end(desk, "Succeeded")
    assert len(await open_pods(desk)) == 2
    assert await conditions(desk) == {}
    await end(desk, "Succeeded", 2)
    assert "Complete" in await conditions(desk)


async def test_a_failed_pod_is_replaced_after_a_back_off(desk: Desk) -> None:
    await create(desk)
    await end(desk, "Failed")
    assert await open_pods(desk) == []
    assert (await status(desk))["failed"] == 1
    assert 8 < desk.again_s("j") <= 10
    desk.forward(10)
    await desk.settle()
    assert len(await open_pods(desk)) == 1
    await end(desk, "Failed")
    assert 18 < desk.again_s("j") <= 20


async def test_too_many_failures_fail_the_job(desk: Desk) -> None:
    await create(desk, backoffLimit=1, parallelism=2, completions=2)
    await end(desk, "Failed")
    desk.forward(600)
    await desk.settle()
    await end(desk, "Failed")
    words = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert await conditions(desk) == {"FailureTarget": words, "Failed": words}
    assert (await status(desk))["failed"] == 3  # the pod that was still running counts, too
    assert await open_pods(desk) == []
    assert desk.events("BackoffLimitExceeded") == [words[1]]
    assert "completionTime" not in await status(desk)


async def test_a_job_is_over_only_when_its_last_pod_has_gone(desk: Desk) -> None:
    await desk.add_node("n1")
    await create(desk, activeDeadlineSeconds=60)
    (pod,) = await desk.all(PODS)
    await desk.bind(pod["metadata"]["name"], "n1")
    await desk.run_pods()
    await desk.settle()
    assert 50 < desk.again_s("j") <= 60
    desk.forward(61)
    await desk.settle()
    words = ("DeadlineExceeded", "Job was active longer than specified deadline")
    assert await conditions(desk) == {"FailureTarget": words}
    assert (await status(desk))["terminating"] == 1
    await desk.finish_deletions()
    await desk.settle()
    assert await conditions(desk) == {"FailureTarget": words, "Failed": words}
    assert await desk.all(PODS) == []


async def test_a_suspended_job_has_no_pods_until_it_goes_on(desk: Desk) -> None:
    await create(desk, suspend=True)
    assert await desk.all(PODS) == []
    assert await conditions(desk) == {"Suspended": ("JobSuspended", "Job suspended")}
    assert "startTime" not in await status(desk)
    await desk.patch(JOBS, "j", {"spec": {"suspend": False}})
    await desk.settle()
    assert len(await desk.all(PODS)) == 1
    (condition,) = (await status(desk))["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "JobResumed")
    await desk.patch(JOBS, "j", {"spec": {"suspend": True}})
    await desk.settle()
    assert await desk.all(PODS) == []
    assert "failed" not in await status(desk)
    assert desk.events("Suspended") + desk.events("Resumed") == [
        "Job suspended",
        "Job suspended",
        "Job resumed",
    ]


async def test_every_index_is_completed_once(desk: Desk) -> None:
    await create(desk, completionMode="Indexed", completions=5, parallelism=3)
    assert indexes(await open_pods(desk)) == ["0", "1", "2"]
    await end(desk, "Succeeded", 2)
    done = set("01234") - set(indexes(await open_pods(desk)))
    assert (await status(desk))["completedIndexes"] == ",".join(sorted(done))
    await end(desk, "Succeeded", 3)
    found = await status(desk)
    assert (found["completedIndexes"], found["succeeded"]) == ("0-4", 5)
    assert "Complete" in await conditions(desk)


async def test_a_failed_index_is_tried_again_on_its_own(desk: Desk) -> None:
    await create(
        desk,
        completionMode="Indexed",
        completions=2,
        parallelism=2,
        backoffLimitPerIndex=1,
        backoffLimit=99,
    )
    first = (await open_pods(desk))[0]["metadata"]["annotations"][INDEX]
    await end(desk, "Failed")
    desk.forward(11)
    await desk.settle()
    (again,) = [p for p in await open_pods(desk) if indexes([p]) == [first]]
    count = again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"]
    assert count == "1"
    await desk.set_phase(again, "Failed")
    await desk.settle()
    assert (await status(desk))["failedIndexes"] == first
    assert await conditions(desk) == {}  # the other one still runs
    await end(desk, "Succeeded")
    words = ("FailedIndexes", "Job has failed indexes")
    assert await conditions(desk) == {"FailureTarget": words, "Failed": words}


async def test_the_success_policy_ends_the_job_early(desk: Desk) -> None:
    rules = [{"succeededIndexes": "0-3", "succeededCount": 1}]
    await create(
        desk,
        completionMode="Indexed",
        completions=4,
        parallelism=4,
        successPolicy={"rules": rules},
    )
    await end(desk, "Succeeded")
    await desk.finish_deletions()
    await desk.settle()
    words = ("SuccessPolicy", "Matched rules at index 0")
    assert await conditions(desk) == {"SuccessCriteriaMet": words, "Complete": words}
    found = await status(desk)
    assert (found["succeeded"], found.get("failed")) == (1, None)
    assert await open_pods(desk) == []


async def test_the_failure_policy_ignores_or_ends(desk: Desk) -> None:
    def rule(action: str, code: int) -> Obj:
        return {"action": action, "onExitCodes": {"operator": "In", "values": [code]}}

    rules = [rule("Ignore", 7), rule("FailJob", 42)]
    await create(desk, backoffLimit=0, podFailurePolicy={"rules": rules})
    await end(desk, "Failed", code=7)
    assert "failed" not in await status(desk)
    desk.forward(11)
    await desk.settle()
    await end(desk, "Failed", code=42)
    found = await conditions(desk)
    reason, message = found["Failed"]
    assert reason == "PodFailurePolicy"
    assert message.endswith("failed with exit code 42 matching FailJob rule at index 1")


async def test_pods_beyond_a_lower_parallelism_are_deleted_uncounted(desk: Desk) -> None:
    await create(desk, completions=4, parallelism=4)
    await desk.patch(JOBS, "j", {"spec": {"parallelism": 1}})
    await desk.settle()
    assert len(await open_pods(desk)) == 1
    assert "failed" not in await status(desk)


async def test_a_finished_job_goes_after_its_time(desk: Desk) -> None:
    await create(desk, ttlSecondsAfterFinished=100)
    await end(desk, "Succeeded")
    assert 90 < desk.again_s("j", 1) <= 100
    desk.forward(101)
    await desk.settle()
    found = await desk.all(JOBS)
    assert not found or "deletionTimestamp" in found[0]["metadata"]
