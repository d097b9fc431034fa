"""CronJobs on a real API server."""

import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CRON_JOBS, JOBS
from localkube.controllers import cron_job
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import template


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, cron_job.CONTROLLER) as desk:
        yield desk


async def create(desk: Desk, **spec: Any) -> None:
    job = {"spec": {"template": template("c", restartPolicy="Never")}}
    made = {"schedule": "* * * * *", "jobTemplate": job, **spec}
    await desk.create(CRON_JOBS, {"metadata": {"name": "c"}, "spec": made})
    await desk.settle()


async def pass_minutes(desk: Desk, count: int = 1) -> None:
    for _ in range(count):
        desk.forward(60)
        await desk.settle()


async def finish(desk: Desk, job: Obj, kind: str = "Complete") -> None:
    stamp = desk.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    how = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    times = {"lastTransitionTime": stamp, "lastProbeTime": stamp}
    conditions = [{"type": t, "status": "True", **times} for t in (how, kind)]
    status = {"startTime": stamp, "conditions": conditions, "uncountedTerminatedPods": {}}
    if kind == "Complete":
        status["completionTime"] = stamp
    path = JOBS.path("default", job["metadata"]["name"], "status")
    await desk.kube.patch(path, {"status": status})
    await desk.settle()


async def get(desk: Desk) -> Obj:
    return await desk.get(CRON_JOBS, "c")


async def test_a_job_is_started_at_its_time(desk: Desk) -> None:
    await create(desk)
    assert await desk.names(JOBS) == []
    assert 0 < desk.again_s("c") <= 60.1
    await pass_minutes(desk)
    (job,) = await desk.all(JOBS)
    scheduled = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    time = datetime.datetime.fromisoformat(scheduled)
    name = f"c-{int(time.timestamp()) // 60}"
    assert job["metadata"]["name"] == name
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "c", True)
    status = (await get(desk))["status"]
    assert status["lastScheduleTime"] == scheduled
    (active,) = status["active"]
    assert (active["kind"], active["name"], active["uid"]) == ("Job", name, job["metadata"]["uid"])
    assert desk.events() == [f"Created job {name}"]
    await desk.settle()
    assert len(await desk.names(JOBS)) == 1


async def test_a_finished_job_is_no_longer_active(desk: Desk) -> None:
    await create(desk)
    await pass_minutes(desk)
    (job,) = await desk.all(JOBS)
    await finish(desk, job)
    status = (await get(desk))["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"]
    name = job["metadata"]["name"]
    assert desk.events("SawCompletedJob") == [f"Saw completed job: {name}, condition: Complete"]


@pytest.mark.parametrize(("policy", "count"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
async def test_the_concurrency_policy_allows_replaces_or_forbids(
    desk: Desk, policy: str, count: int
) -> None:
    await create(desk, concurrencyPolicy=policy)
    await pass_minutes(desk, 3)
    alive = [j for j in await desk.all(JOBS) if "deletionTimestamp" not in j["metadata"]]
    assert len(alive) == count
    assert len((await get(desk))["status"]["active"]) == count
    if policy == "Forbid":
        assert set(desk.events("JobAlreadyActive")) == {
            "Not starting job because prior execution is running and concurrency policy is Forbid"
        }
    if policy == "Replace":
        assert len(desk.events("SuccessfulDelete")) == 2


async def test_a_suspended_one_starts_nothing(desk: Desk) -> None:
    await create(desk, suspend=True)
    await pass_minutes(desk, 2)
    assert await desk.names(JOBS) == []


async def test_finished_jobs_are_kept_as_far_as_wanted(desk: Desk) -> None:
    await create(desk, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for kind in ("Complete", "Failed", "Complete"):
        await pass_minutes(desk)
        (job,) = [j for j in await desk.all(JOBS) if "conditions" not in j["status"]]
        await finish(desk, job, kind)
    kept = [j for j in await desk.all(JOBS) if "deletionTimestamp" not in j["metadata"]]
    assert [j["metadata"]["name"] for j in kept] == [job["metadata"]["name"]]
    assert len(desk.events("SuccessfulDelete")) == 2


async def test_a_time_that_is_too_long_ago_is_missed(desk: Desk) -> None:
    await create(desk, schedule="0 * * * *", startingDeadlineSeconds=5)
    now = desk.now()
    to_next_hour = 3600 - (now.minute * 60 + now.second)
    desk.forward(to_next_hour + 600)
    await desk.settle()
    assert await desk.names(JOBS) == []


async def test_only_the_last_of_many_missed_times_starts_a_job(desk: Desk) -> None:
    await create(desk)
    desk.forward(3 * 3600)
    await desk.settle()
    assert len(await desk.names(JOBS)) == 1
    assert desk.events("TooManyMissedTimes") == [
        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
        "clock skew"
    ]


async def test_the_zone_shows_in_the_annotation(desk: Desk) -> None:
    await create(desk, timeZone="Asia/Shanghai")
    await pass_minutes(desk)
    (job,) = await desk.all(JOBS)
    scheduled = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled.endswith(":00+08:00")


async def test_a_job_that_the_controller_did_not_create_causes_a_warning(desk: Desk) -> None:
    """kubectl create job --from=cronjob/c"""
    await create(desk, schedule="0 0 1 1 *")
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "c",
        "uid": (await get(desk))["metadata"]["uid"],
        "controller": True,
    }
    spec = (await get(desk))["spec"]["jobTemplate"]["spec"]
    await desk.create(
        JOBS, {"metadata": {"name": "by-hand", "ownerReferences": [owner]}, "spec": spec}
    )
    await desk.settle()
    (text,) = set(desk.events("UnexpectedJob"))
    assert text == "Saw a job that the controller did not create or forgot: by-hand"
    assert "active" not in (await get(desk)).get("status", {})


async def test_a_job_that_vanished_is_not_waited_for(desk: Desk) -> None:
    await create(desk, concurrencyPolicy="Forbid")
    await pass_minutes(desk)
    (name,) = await desk.names(JOBS)
    await desk.delete(JOBS, name, {"propagationPolicy": "Background"})
    await desk.settle()
    assert "active" not in (await get(desk))["status"]
    assert desk.events("MissingJob") == [f"Active job went missing: {name}"]


async def test_a_schedule_without_times_is_called_invalid(desk: Desk) -> None:
    await create(desk, schedule="0 0 31 2 *")
    assert desk.events("InvalidSchedule") == [
        "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second"
    ]
    assert desk.again_s("c") == 0
