"""StatefulSets on a real API server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, VOLUME_CLAIMS
from localkube.controllers import stateful_set
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import image, pod, template, workload

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, stateful_set.controller()) as desk:
        yield desk


async def create(desk: Desk, **spec: Any) -> None:
    await desk.create(STATEFUL_SETS, workload(**{"replicas": 3, "serviceName": "web", **spec}))
    await desk.settle()


async def status(desk: Desk) -> Obj:
    found: Obj = (await desk.get(STATEFUL_SETS, "web"))["status"]
    return found


async def images(desk: Desk) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in await desk.all(PODS)]


async def test_pods_come_one_after_the_other(desk: Desk) -> None:
    await create(desk)
    assert await desk.names(PODS) == ["web-0"]
    await desk.run_pods()
    await desk.settle()
    assert await desk.names(PODS) == ["web-0", "web-1"]
    await desk.run_to_the_end()
    assert await desk.names(PODS) == ["web-0", "web-1", "web-2"]
    assert desk.events("SuccessfulCreate") == [
        f"Create Pod web-{number} in StatefulSet web successful" for number in range(3)
    ]


async def test_a_parallel_set_makes_all_pods_at_once(desk: Desk) -> None:
    await create(desk, podManagementPolicy="Parallel")
    assert await desk.names(PODS) == ["web-0", "web-1", "web-2"]


async def test_the_status_is_what_kubernetes_writes(desk: Desk) -> None:
    await create(desk)
    (revision,) = await desk.names(CONTROLLER_REVISIONS)
    assert await status(desk) == {
        "observedGeneration": 1,
        "replicas": 1,
        "availableReplicas": 0,
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    await desk.run_to_the_end()
    assert await status(desk) == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


async def test_an_update_rolls_from_the_top(desk: Desk) -> None:
    await create(desk)
    await desk.run_to_the_end()
    await desk.patch(STATEFUL_SETS, "web", image("nginx:2"))
    await desk.settle()
    assert await images(desk) == ["nginx", "nginx", "nginx:2"]
    half = await status(desk)
    assert half["currentRevision"] != half["updateRevision"]
    assert (half["currentReplicas"], half["updatedReplicas"]) == (2, 1)
    await desk.run_to_the_end()
    assert await images(desk) == ["nginx:2"] * 3
    assert (await status(desk))["currentRevision"] == half["updateRevision"]


async def test_a_partition_keeps_the_lower_pods_as_they_are(desk: Desk) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await create(desk, updateStrategy=strategy)
    await desk.run_to_the_end()
    await desk.patch(STATEFUL_SETS, "web", image("nginx:2"))
    await desk.run_to_the_end()
    assert await images(desk) == ["nginx", "nginx", "nginx:2"]
    await desk.delete(PODS, "web-0")  # is created again with the old revision
    await desk.run_to_the_end()
    assert await images(desk) == ["nginx", "nginx", "nginx:2"]


async def test_on_delete_only_deleted_pods_are_updated(desk: Desk) -> None:
    await create(desk, updateStrategy={"type": "OnDelete"})
    await desk.run_to_the_end()
    await desk.patch(STATEFUL_SETS, "web", image("nginx:2"))
    await desk.run_to_the_end()
    assert await images(desk) == ["nginx"] * 3
    await desk.delete(PODS, "web-1")
    await desk.run_to_the_end()
    assert await images(desk) == ["nginx", "nginx:2", "nginx"]


async def test_going_back_gives_an_old_revision_a_new_number(desk: Desk) -> None:
    await create(desk, replicas=1)
    for name in ("nginx:2", "nginx"):
        await desk.patch(STATEFUL_SETS, "web", image(name))
        await desk.run_to_the_end()
    found = {r["revision"]: r for r in await desk.all(CONTROLLER_REVISIONS)}
    assert sorted(found) == [2, 3]
    assert found[3]["metadata"]["name"] == (await status(desk))["currentRevision"]
    assert await images(desk) == ["nginx"]


async def test_the_history_is_as_long_as_it_may_be(desk: Desk) -> None:
    await create(desk, replicas=1, revisionHistoryLimit=1)
    for number in range(4):
        await desk.patch(STATEFUL_SETS, "web", image(f"nginx:{number}"))
        await desk.run_to_the_end()
    numbers = [revision["revision"] for revision in await desk.all(CONTROLLER_REVISIONS)]
    assert sorted(numbers) == [4, 5]


async def test_a_deleted_pod_comes_back_after_it_has_gone(desk: Desk) -> None:
    await desk.add_node("n1")
    await create(desk, replicas=1)
    await desk.bind("web-0", "n1")
    await desk.run_to_the_end()
    first = await desk.get(PODS, "web-0")
    await desk.delete(PODS, "web-0")
    await desk.settle()
    assert (await desk.get(PODS, "web-0"))["metadata"]["uid"] == first["metadata"]["uid"]
    await desk.run_to_the_end()
    assert (await desk.get(PODS, "web-0"))["metadata"]["uid"] != first["metadata"]["uid"]


async def test_scaling_down_goes_from_the_top(desk: Desk) -> None:
    await create(desk)
    await desk.run_to_the_end()
    await desk.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await desk.run_to_the_end()
    assert await desk.names(PODS) == ["web-0"]
    assert desk.events("SuccessfulDelete") == [
        "Delete Pod web-2 in StatefulSet web successful",
        "Delete Pod web-1 in StatefulSet web successful",
    ]


async def test_an_available_pod_must_have_been_ready_for_a_while(desk: Desk) -> None:
    await create(desk, replicas=2, minReadySeconds=60)
    await desk.run_pods()
    await desk.settle()
    assert await desk.names(PODS) == ["web-0"]
    assert (await status(desk))["readyReplicas"] == 1
    assert 50 < desk.again_s("web") <= 60
    desk.forward(61)
    await desk.settle()
    assert await desk.names(PODS) == ["web-0", "web-1"]


async def test_claims_are_made_before_the_pod_and_stay_after_it(desk: Desk) -> None:
    await create(desk, volumeClaimTemplates=[CLAIM])
    await desk.run_to_the_end()
    assert await desk.names(VOLUME_CLAIMS) == ["data-web-0", "data-web-1", "data-web-2"]
    assert desk.events()[:2] == [
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "Create Pod web-0 in StatefulSet web successful",
    ]
    await desk.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await desk.run_to_the_end()
    assert len(await desk.names(VOLUME_CLAIMS)) == 3


async def test_claims_are_tied_to_the_set_or_to_a_pod_beyond_it(desk: Desk) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await desk.add_node("n1")
    await create(
        desk,
        replicas=2,
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[CLAIM],
        persistentVolumeClaimRetentionPolicy=policy,
    )
    await desk.bind("web-1", "n1")
    await desk.run_to_the_end()
    claims = await desk.all(VOLUME_CLAIMS)
    assert {c["metadata"]["ownerReferences"][0]["kind"] for c in claims} == {"StatefulSet"}
    await desk.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await desk.settle()
    (owner,) = (await desk.get(VOLUME_CLAIMS, "data-web-1"))["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Pod", "web-1")


async def test_a_set_that_grows_again_waits_for_the_claims_of_earlier_pods_to_go(
    desk: Desk,
) -> None:
    """No watch tells when a claim has gone, so the set has to look again."""
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    await create(
        desk,
        replicas=1,
        volumeClaimTemplates=[CLAIM],
        persistentVolumeClaimRetentionPolicy=policy,
    )
    await desk.run_to_the_end()
    await desk.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 0}})
    await desk.run_to_the_end()
    await desk.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await desk.settle()
    assert await desk.names(PODS) == []
    assert 0 < desk.again_s("web") <= 1
    await desk.delete(VOLUME_CLAIMS, "data-web-0")
    desk.forward(1)
    await desk.settle()
    assert await desk.names(PODS) == ["web-0"]


async def test_an_orphan_that_matches_is_adopted_and_a_member_that_does_not_is_released(
    desk: Desk,
) -> None:
    await desk.create(PODS, pod("web-0", "web"))
    await desk.create(PODS, pod("other-0", "web"))
    await create(desk, replicas=1)
    adopted = await desk.get(PODS, "web-0")
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "web"
    assert "ownerReferences" not in (await desk.get(PODS, "other-0"))["metadata"]
    await desk.run_to_the_end()
    labels = (await desk.get(PODS, "web-0"))["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-0"
    await desk.patch(PODS, "web-0", {"metadata": {"labels": {"app": "else"}}})
    with pytest.raises(Exception, match='pods "web-0" already exists'):
        await desk.settle()
    assert "ownerReferences" not in (await desk.get(PODS, "web-0"))["metadata"]


async def test_a_refused_pod_causes_an_event(desk: Desk) -> None:
    broken = template(serviceAccountName="nobody")
    with pytest.raises(Exception, match="nobody"):
        await create(desk, template=broken)
    assert desk.events("FailedCreate") == [
        'Create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: error '
        'looking up service account default/nobody: serviceaccount "nobody" not found'
    ]
