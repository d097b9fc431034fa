"""ReplicaSets and ReplicationControllers on a real API server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS
from localkube.controllers import replica_set
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod, template, workload


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, *replica_set.controllers()) as desk:
        yield desk


async def create(desk: Desk, **spec: Any) -> None:
    await desk.create(REPLICA_SETS, workload(**{"replicas": 3, **spec}))
    await desk.settle()


async def status(desk: Desk) -> Obj:
    found: Obj = (await desk.get(REPLICA_SETS, "web"))["status"]
    return found


async def test_there_are_as_many_pods_as_wanted(desk: Desk) -> None:
    await create(desk)
    made = await desk.all(PODS)
    assert len(made) == 3
    for each in made:
        metadata = each["metadata"]
        assert metadata["generateName"] == "web-"
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["controller"], owner["blockOwnerDeletion"]) == (
            "ReplicaSet",
            True,
            True,
        )
    names = [each["metadata"]["name"] for each in made]
    assert sorted(desk.events("SuccessfulCreate")) == sorted(f"Created pod: {n}" for n in names)


async def test_the_status_counts_pods(desk: Desk) -> None:
    await create(desk)
    assert await status(desk) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    await desk.run_to_the_end()
    found = await status(desk)
    assert (found["readyReplicas"], found["availableReplicas"]) == (3, 3)


async def test_a_pod_is_available_after_a_while(desk: Desk) -> None:
    await create(desk, replicas=1, minReadySeconds=30)
    await desk.run_to_the_end()
    assert "availableReplicas" not in await status(desk)
    assert 20 < desk.again_s("web") <= 30
    desk.forward(31)
    await desk.settle()
    assert (await status(desk))["availableReplicas"] == 1


async def test_deleted_failed_and_finished_pods_are_replaced(desk: Desk) -> None:
    await create(desk)
    first, second, third = await desk.all(PODS)
    await desk.delete(PODS, first["metadata"]["name"])
    await desk.set_phase(second, "Failed")
    await desk.set_phase(third, "Succeeded")
    await desk.settle()
    alive = [p for p in await desk.all(PODS) if p["status"]["phase"] == "Pending"]
    assert len(alive) == 3
    assert (await status(desk))["replicas"] == 3


async def test_surplus_pods_are_deleted_in_the_order_of_kubernetes(desk: Desk) -> None:
    await create(desk)
    first, second, _ = await desk.names(PODS)
    await desk.run_pods(first, second)
    cheap = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    await desk.patch(PODS, second, {"metadata": {"annotations": cheap}})
    await desk.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
    await desk.settle()
    assert await desk.names(PODS) == [first, second]  # the third was not ready
    await desk.patch(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
    await desk.settle()
    assert await desk.names(PODS) == [first]
    assert len(desk.events("SuccessfulDelete")) == 2


async def test_terminating_pods_have_a_count_of_their_own(desk: Desk) -> None:
    await desk.add_node("n1")
    await create(desk, replicas=1)
    (name,) = await desk.names(PODS)
    await desk.bind(name, "n1")
    await desk.run_pods()
    await desk.delete(PODS, name)
    await desk.settle()
    found = await status(desk)
    assert (found["replicas"], found["terminatingReplicas"]) == (1, 1)
    await desk.finish_deletions()
    await desk.settle()
    assert (await status(desk))["terminatingReplicas"] == 0


async def test_a_matching_orphan_is_adopted(desk: Desk) -> None:
    await desk.create(PODS, pod("mine", "web"))
    await desk.create(PODS, pod("other", "else"))
    await create(desk, replicas=1)
    assert await desk.names(PODS) == ["mine", "other"]
    (owner,) = (await desk.get(PODS, "mine"))["metadata"]["ownerReferences"]
    assert owner["name"] == "web"
    assert "ownerReferences" not in (await desk.get(PODS, "other"))["metadata"]


async def test_an_orphan_that_comes_later_is_adopted_and_one_too_many_goes(desk: Desk) -> None:
    await create(desk, replicas=1)
    await desk.run_to_the_end()
    await desk.create(PODS, pod("late", "web"))
    await desk.settle()
    assert "late" not in await desk.names(PODS)


async def test_a_pod_that_no_longer_matches_is_released_and_replaced(desk: Desk) -> None:
    await create(desk, replicas=1)
    (name,) = await desk.names(PODS)
    await desk.patch(PODS, name, {"metadata": {"labels": {"app": "debug"}}})
    await desk.settle()
    assert "ownerReferences" not in (await desk.get(PODS, name))["metadata"]
    assert len(await desk.names(PODS)) == 2


async def test_no_pod_is_created_twice_while_the_mirror_is_late(desk: Desk) -> None:
    await desk.create(REPLICA_SETS, workload(replicas=3))
    await desk._catch_up()
    reconcile, context = desk.controllers[0].reconcile, desk.contexts[0]
    stopped = desk.mirrors.of(PODS)._take
    desk.mirrors.of(PODS)._take = lambda event: None  # type: ignore[method-assign]
    for _ in range(3):
        await reconcile(("default", "web"), context)
    desk.mirrors.of(PODS)._take = stopped  # type: ignore[method-assign]
    assert len(await desk.names(PODS)) == 3


async def test_a_failed_creation_of_pods_sets_a_condition(desk: Desk) -> None:
    await desk.create(RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    with pytest.raises(Refused, match="exceeded quota"):
        await create(desk)
    (condition,) = (await status(desk))["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert condition["message"].endswith(
        "is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    )
    assert desk.events("FailedCreate")[0].startswith('Error creating: pods "web-')
    await desk.patch(RESOURCE_QUOTAS, "q", {"spec": {"hard": {"pods": "9"}}})
    desk.forward(0)
    await desk.settle()
    assert "conditions" not in await status(desk)
    assert len(await desk.names(PODS)) == 3


async def test_an_owner_on_its_way_out_makes_nothing(desk: Desk) -> None:
    made = workload(replicas=2)
    made["metadata"]["finalizers"] = ["example.com/hold"]
    await desk.create(REPLICA_SETS, made)
    await desk.delete(REPLICA_SETS, "web")
    await desk.settle()
    assert await desk.names(PODS) == []


async def test_a_replication_controller_does_the_same(desk: Desk) -> None:
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": template()}
    await desk.create(REPLICATION_CONTROLLERS, {"metadata": {"name": "web"}, "spec": spec})
    await desk.run_to_the_end()
    owner = (await desk.all(PODS))[0]["metadata"]["ownerReferences"][0]
    assert (owner["apiVersion"], owner["kind"]) == ("v1", "ReplicationController")
    found = await desk.get(REPLICATION_CONTROLLERS, "web")
    assert found["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }
