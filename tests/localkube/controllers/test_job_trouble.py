"""Jobs whose pods are deleted, orphaned or refused, and whose writes fail."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.client import Kube
from kubeclient.errors import NoAnswer, Refused
from kubeclient.objects import Obj
from kubeclient.resources import JOBS, PODS, RESOURCE_QUOTAS
from localkube.controllers import job
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.job_subject import conditions, create, end, open_pods, status
from tests.localkube.controllers.samples import template


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, job.controller(), job.TTL_CONTROLLER) as desk:
        yield desk


async def test_pods_on_their_way_out_are_replaced_at_once_or_after(desk: Desk) -> None:
    await desk.add_node("n1")
    await create(desk, podReplacementPolicy="Failed")
    (pod,) = await desk.all(PODS)
    await desk.bind(pod["metadata"]["name"], "n1")
    await desk.run_pods()
    await desk.delete(PODS, pod["metadata"]["name"])
    await desk.settle()
    assert len(await desk.all(PODS)) == 1
    assert (await status(desk))["terminating"] == 1
    await desk.set_phase(pod, "Failed")
    desk.forward(11)
    await desk.settle()
    assert len(await open_pods(desk)) == 1
    assert (await status(desk))["failed"] == 1


async def test_restarts_of_containers_count_as_failures(desk: Desk) -> None:
    made = template("j", restartPolicy="OnFailure")
    await create(desk, template=made, backoffLimit=2)
    (pod,) = await desk.all(PODS)
    container = {"name": "c", "image": "", "imageID": "", "ready": True, "restartCount": 2}
    await desk.set_phase(pod, "Running", containerStatuses=[container])
    await desk.settle()
    await desk.finish_deletions()
    await desk.settle()
    assert (await conditions(desk))["Failed"][0] == "BackoffLimitExceeded"


async def test_a_job_of_another_controller_is_left_alone(desk: Desk) -> None:
    await create(desk, managedBy="example.com/mine")
    assert await desk.all(PODS) == []


async def test_pods_of_a_deleted_job_lose_their_finalizer(desk: Desk) -> None:
    await create(desk)
    await desk.delete(JOBS, "j")
    (pod,) = await desk.all(PODS)
    await desk.delete(PODS, pod["metadata"]["name"])
    await desk.settle()
    assert await desk.all(PODS) == []


async def test_orphaned_pods_lose_their_finalizer(desk: Desk) -> None:
    await create(desk)
    await desk.delete(JOBS, "j")
    (pod,) = await desk.all(PODS)
    await desk.patch(PODS, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    await desk.settle()
    (pod,) = await desk.all(PODS)
    assert "finalizers" not in pod["metadata"]


async def test_a_failed_creation_of_pods_causes_an_event(desk: Desk) -> None:
    await desk.create(RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    with pytest.raises(Refused, match="exceeded quota"):
        await create(desk)
    assert desk.events("FailedCreate")[0].startswith('Error creating: pods "j-')


async def test_nothing_is_lost_or_counted_twice_whatever_breaks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write fails once, before or after the server has done it."""
    await create(desk, completions=4, parallelism=4, backoffLimit=9)
    call, tried = Kube._call, set[tuple[str, str, int]]()

    async def breaking(self: Kube, method: str, path: str, **how: Any) -> Obj:
        if method in ("PUT", "PATCH", "DELETE", "POST") and "/events" not in path:
            for half in (0, 1):
                if (method, path, half) not in tried:
                    tried.add((method, path, half))
                    if half:
                        await call(self, method, path, **how)
                    raise NoAnswer("broken")
        return await call(self, method, path, **how)

    pods = await open_pods(desk)
    for number, pod in enumerate(pods):
        await desk.set_phase(pod, "Failed" if number == 0 else "Succeeded")
    monkeypatch.setattr(Kube, "_call", breaking)
    for _ in range(60):
        with contextlib.suppress(NoAnswer):
            await desk.settle()
        desk.forward(20)
    monkeypatch.setattr(Kube, "_call", call)
    await end(desk, "Succeeded", 4)
    await desk.settle()
    found = await status(desk)
    assert found["failed"] == 1
    assert found["succeeded"] >= 4
    assert "Complete" in await conditions(desk)
    assert found["uncountedTerminatedPods"] == {}


async def test_nothing_is_counted_twice_while_the_mirror_is_late(desk: Desk) -> None:
    await create(desk, backoffLimit=9)
    (pod,) = await desk.all(PODS)
    await desk.set_phase(pod, "Failed")
    await desk._catch_up()
    mirror = desk.mirrors.of(PODS)
    take = mirror._take
    mirror._take = lambda event: None  # type: ignore[method-assign]
    for _ in range(3):
        await desk.controllers[0].reconcile(("default", "j"), desk.contexts[0])
    mirror._take = take  # type: ignore[method-assign]
    found = await status(desk)
    assert (found["failed"], found["uncountedTerminatedPods"]) == (1, {})
