"""The status of PodDisruptionBudgets, counted as in Kubernetes."""

from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS, DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from localkube.controllers import disruption
from localkube.controllers.pods import controller_reference
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod, workload


def budget(**spec: Any) -> Obj:
    return {
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


async def _owned_pods(desk: Desk, replicas: int, running: int) -> None:
    """The counts for a Deployment with so many replicas and so many running pods."""
    deployment = await desk.create(DEPLOYMENTS, workload("web", replicas=replicas))
    set_ = workload("web", replicas=replicas)
    set_["metadata"]["ownerReferences"] = [controller_reference(deployment, DEPLOYMENTS)]
    made = await desk.create(REPLICA_SETS, set_)
    for number in range(running):
        reference = controller_reference(made, REPLICA_SETS)
        await desk.create(PODS, pod(f"p{number}", "web", ownerReferences=[reference]))
    await desk.run_pods()


async def _counts(desk: Desk) -> tuple[int, int, int, int]:
    await desk.settle()
    status = (await desk.get(DISRUPTION_BUDGETS, "b"))["status"]
    return (
        status["expectedPods"],
        status["desiredHealthy"],
        status["currentHealthy"],
        status["disruptionsAllowed"],
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (3, 2, 3, 1)),
        ({"minAvailable": 5}, (3, 5, 3, 0)),
        ({"minAvailable": "50%"}, (4, 2, 3, 1)),
        ({"minAvailable": "51%"}, (4, 3, 3, 0)),  # rounded up
        ({"maxUnavailable": 1}, (4, 3, 3, 0)),
        ({"maxUnavailable": 2}, (4, 2, 3, 1)),
        ({"maxUnavailable": "30%"}, (4, 2, 3, 1)),  # rounded up, too
        ({"maxUnavailable": 9}, (4, 0, 3, 3)),
    ],
)
async def test_three_of_four_wanted_pods_run(
    tmp_path: Path, spec: Obj, expected: tuple[int, int, int, int]
) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        await _owned_pods(desk, replicas=4, running=3)
        await desk.create(DISRUPTION_BUDGETS, budget(**spec))
        assert await _counts(desk) == expected


async def test_a_percentage_of_pods_without_an_owner_is_zero(tmp_path: Path) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        await desk.create(PODS, pod("alone", "web"))
        await desk.run_pods()
        await desk.create(DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        assert await _counts(desk) == (0, 0, 1, 0)


async def test_min_available_may_be_a_number(tmp_path: Path) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        for name in ("one", "two"):
            await desk.create(PODS, pod(name, "web"))
        await desk.run_pods()
        await desk.create(DISRUPTION_BUDGETS, budget(minAvailable=1))
        assert await _counts(desk) == (2, 1, 2, 1)


async def test_pods_that_are_on_their_way_out_are_not_healthy(tmp_path: Path) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        await desk.add_node("n")
        for name in ("one", "two"):
            await desk.create(PODS, pod(name, "web"))
            await desk.bind(name, "n")
        await desk.run_pods()
        await desk.create(DISRUPTION_BUDGETS, budget(minAvailable=1))
        await desk.delete(PODS, "one", {"gracePeriodSeconds": 30})
        assert await _counts(desk) == (2, 1, 1, 0)


async def test_other_peoples_pods_do_not_count(tmp_path: Path) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        await desk.create(PODS, pod("other", "db"))
        await desk.run_pods()
        await desk.create(DISRUPTION_BUDGETS, budget(minAvailable=0))
        assert await _counts(desk) == (0, 0, 0, 0)


async def test_an_eviction_that_did_not_happen_is_forgotten(tmp_path: Path) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        for name in ("one", "two"):
            await desk.create(PODS, pod(name, "web"))
        await desk.run_pods()
        await desk.create(DISRUPTION_BUDGETS, budget(minAvailable=1))
        await desk.settle()
        charged = {"disruptedPods": {"one": desk.now().strftime("%Y-%m-%dT%H:%M:%SZ")}}
        path = DISRUPTION_BUDGETS.path("default", "b", "status")
        await desk.kube.patch(path, {"status": charged})
        assert await _counts(desk) == (2, 1, 1, 0)
        assert desk.again_s("b") > 0
        desk.forward(121)
        assert await _counts(desk) == (2, 1, 2, 1)


async def test_the_condition_says_whether_a_disruption_is_allowed(tmp_path: Path) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        await desk.create(PODS, pod("one", "web"))
        await desk.create(DISRUPTION_BUDGETS, budget(minAvailable=0))
        await desk.settle()

        async def condition() -> tuple[str, str]:
            found = (await desk.get(DISRUPTION_BUDGETS, "b"))["status"]["conditions"][0]
            return found["status"], found["reason"]

        assert await condition() == ("False", "InsufficientPods")
        await desk.run_pods()
        await desk.settle()
        assert await condition() == ("True", "SufficientPods")


async def test_a_circle_of_controllers_ends(tmp_path: Path) -> None:
    """A ReplicaSet that names itself as its controller is a valid object."""
    async with desk_for(tmp_path, disruption.controller()) as desk:
        await _owned_pods(desk, replicas=4, running=3)
        itself = controller_reference(await desk.get(REPLICA_SETS, "web"), REPLICA_SETS)
        await desk.patch(REPLICA_SETS, "web", {"metadata": {"ownerReferences": [itself]}})
        await desk.create(DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        assert await _counts(desk) == (4, 3, 3, 0)


async def test_a_later_workload_of_the_same_name_wants_no_pods_of_the_earlier_one(
    tmp_path: Path,
) -> None:
    async with desk_for(tmp_path, disruption.controller()) as desk:
        await _owned_pods(desk, replicas=4, running=3)
        await desk.delete(REPLICA_SETS, "web")
        await desk.create(REPLICA_SETS, workload("web", replicas=9))
        await desk.create(DISRUPTION_BUDGETS, budget(maxUnavailable=1))
        assert await _counts(desk) == (0, 0, 3, 0)
