"""Deployments, with their replica sets, on a real API server."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.errors import AlreadyExists, Refused
from kubeclient.objects import Obj
from kubeclient.resources import DEPLOYMENTS, PODS, REPLICA_SETS, RESOURCE_QUOTAS
from localkube.controllers import deployment, deployment_sets, replica_set
from localkube.controllers.deployment_sets import REVISION
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import image, template, workload

CAUSE = "kubernetes.io/change-cause"
BROKEN = "broken"  # an image whose pods never run


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, deployment.controller(), *replica_set.controllers()) as desk:
        yield desk


async def create(desk: Desk, **spec: Any) -> None:
    await desk.create(DEPLOYMENTS, workload(**{"replicas": 3, **spec}))
    await desk.settle()


async def get(desk: Desk) -> Obj:
    return await desk.get(DEPLOYMENTS, "web")


async def sets(desk: Desk) -> dict[str, Obj]:
    """The sizes of the replica sets, by image."""
    found = await desk.all(REPLICA_SETS)
    return {rs["spec"]["template"]["spec"]["containers"][0]["image"]: rs for rs in found}


async def sizes(desk: Desk) -> dict[str, int]:
    return {name: rs["spec"]["replicas"] for name, rs in (await sets(desk)).items()}


def revision(obj: Obj) -> str:
    found: str = obj["metadata"]["annotations"][REVISION]
    return found


async def condition(desk: Desk, kind: str) -> Obj:
    found = (await get(desk))["status"]["conditions"]
    return next(c for c in found if c["type"] == kind)


async def run_good_pods(desk: Desk) -> None:
    """Reconciles until nothing changes; pods of the broken image never run."""
    for _ in range(50):
        before = desk.server.api.store.rv
        good = {
            name: pod
            for name, pod in (await desk.pods()).items()
            if pod["spec"]["containers"][0]["image"] != BROKEN
        }
        if good:
            await desk.run_pods(*good)
        await desk.settle()
        if desk.server.api.store.rv == before:
            return


async def test_a_deployment_makes_a_replica_set(desk: Desk) -> None:
    await create(desk)
    (made,) = await desk.all(REPLICA_SETS)
    suffix = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{suffix}"
    assert made["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": suffix}}
    assert made["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert revision(await get(desk)) == "1"
    assert desk.events("ScalingReplicaSet") == [
        f"Scaled up replica set web-{suffix} from 0 to 3",
    ]


async def test_the_status_shows_progress_and_end_of_a_rollout(desk: Desk) -> None:
    await create(desk)
    (name,) = await desk.names(REPLICA_SETS)
    found = (await get(desk))["status"]
    assert found["unavailableReplicas"] == 3
    assert (await condition(desk, "Available"))["reason"] == "MinimumReplicasUnavailable"
    progress = await condition(desk, "Progressing")
    assert progress["reason"] == "ReplicaSetUpdated"
    assert progress["message"] == f'ReplicaSet "{name}" is progressing.'
    await desk.run_to_the_end()
    found = (await get(desk))["status"]
    assert {key: value for key, value in found.items() if key != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    progress = await condition(desk, "Progressing")
    assert (progress["status"], progress["reason"]) == ("True", "NewReplicaSetAvailable")
    assert progress["message"] == f'ReplicaSet "{name}" has successfully progressed.'


async def test_an_update_rolls_within_its_bounds(desk: Desk) -> None:
    await create(desk, replicas=4)
    await desk.run_to_the_end()
    await desk.patch(DEPLOYMENTS, "web", image(BROKEN))
    await run_good_pods(desk)
    # 25 % of 4: one pod more, one fewer; then the rollout waits for the new pods.
    assert await sizes(desk) == {"nginx": 3, BROKEN: 2}
    await desk.patch(DEPLOYMENTS, "web", image("nginx:3"))
    await run_good_pods(desk)
    assert await sizes(desk) == {"nginx": 0, BROKEN: 0, "nginx:3": 4}


async def test_going_back_reuses_the_old_set_under_a_new_number(desk: Desk) -> None:
    await create(desk)
    for name in ("nginx:2", "nginx"):
        await desk.run_to_the_end()
        await desk.patch(DEPLOYMENTS, "web", image(name))
    await desk.run_to_the_end()
    found = await sets(desk)
    assert {name: revision(rs) for name, rs in found.items()} == {"nginx": "3", "nginx:2": "2"}
    history = "deployment.kubernetes.io/revision-history"
    assert found["nginx"]["metadata"]["annotations"][history] == "1"
    assert revision(await get(desk)) == "3"
    assert await sizes(desk) == {"nginx": 3, "nginx:2": 0}


async def test_the_cause_of_a_change_goes_with_its_replica_set(desk: Desk) -> None:
    await create(desk)
    await desk.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": {CAUSE: "first"}}})
    await desk.run_to_the_end()
    change = {"metadata": {"annotations": {CAUSE: "second"}}, **image("nginx:2")}
    await desk.patch(DEPLOYMENTS, "web", change)
    await desk.run_to_the_end()
    causes = {n: rs["metadata"]["annotations"][CAUSE] for n, rs in (await sets(desk)).items()}
    assert causes == {"nginx": "first", "nginx:2": "second"}


def test_only_the_owners_own_annotations_are_copied() -> None:
    last_applied = "kubectl.kubernetes.io/last-applied-configuration"
    own = {CAUSE: "new", last_applied: "{}", REVISION: "7"}
    found = deployment_sets.annotations(
        {"metadata": {"annotations": own}}, {CAUSE: "old", REVISION: "2", "mine": "kept"}, 3
    )
    assert found == {
        CAUSE: "new",
        REVISION: "3",
        "mine": "kept",
        "deployment.kubernetes.io/revision-history": "2",
    }


async def test_recreate_waits_until_everything_old_has_gone(desk: Desk) -> None:
    await desk.add_node("n1")
    await create(desk, strategy={"type": "Recreate"}, replicas=1)
    (name,) = await desk.names(PODS)
    await desk.bind(name, "n1")
    await desk.run_to_the_end()
    await desk.patch(DEPLOYMENTS, "web", image("nginx:2"))
    await desk.settle()
    assert await sizes(desk) == {"nginx": 0}  # its pod is still terminating
    await desk.finish_deletions()
    await desk.settle()
    assert await sizes(desk) == {"nginx": 0, "nginx:2": 1}


async def test_a_paused_deployment_only_changes_its_size(desk: Desk) -> None:
    await create(desk)
    await desk.run_to_the_end()
    await desk.patch(DEPLOYMENTS, "web", {"spec": {"paused": True, **image("nginx:2")["spec"]}})
    await desk.run_to_the_end()
    assert await sizes(desk) == {"nginx": 3}
    paused = await condition(desk, "Progressing")
    assert (paused["status"], paused["reason"]) == ("Unknown", "DeploymentPaused")
    await desk.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})
    await desk.run_to_the_end()
    assert await sizes(desk) == {"nginx": 5}
    await desk.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await desk.settle()
    await desk.run_to_the_end()
    assert await sizes(desk) == {"nginx": 0, "nginx:2": 5}
    assert (await condition(desk, "Progressing"))["reason"] == "NewReplicaSetAvailable"


async def test_a_resize_in_mid_rollout_is_shared_out(desk: Desk) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await create(desk, replicas=10, strategy=strategy)
    await desk.run_to_the_end()
    await desk.patch(DEPLOYMENTS, "web", image(BROKEN))
    await run_good_pods(desk)
    assert await sizes(desk) == {"nginx": 8, BROKEN: 5}
    await desk.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
    await run_good_pods(desk)
    assert await sizes(desk) == {"nginx": 11, BROKEN: 7}


async def test_a_rollout_without_progress_exceeds_its_deadline(desk: Desk) -> None:
    await create(desk, template=template(image=BROKEN), progressDeadlineSeconds=60)
    assert 50 < desk.again_s("web") <= 60
    desk.forward(61)
    await desk.settle()
    (name,) = await desk.names(REPLICA_SETS)
    found = await condition(desk, "Progressing")
    assert (found["status"], found["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert found["message"] == f'ReplicaSet "{name}" has timed out progressing.'
    assert desk.again_s("web") == 0


async def test_the_history_is_as_long_as_it_may_be(desk: Desk) -> None:
    await create(desk, replicas=1, revisionHistoryLimit=1)
    for number in range(4):
        await desk.run_to_the_end()
        await desk.patch(DEPLOYMENTS, "web", image(f"nginx:{number}"))
    await desk.run_to_the_end()
    assert sorted(await sizes(desk)) == ["nginx:2", "nginx:3"]


async def test_another_template_of_the_same_hash_gets_another_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment_sets, "content_hash", lambda content, count: f"same{count}")
    await create(desk, replicas=1)
    await desk.run_to_the_end()
    await desk.patch(DEPLOYMENTS, "web", image("nginx:2"))
    with pytest.raises(AlreadyExists):
        await desk.settle()
    await desk.run_to_the_end()
    assert sorted(await desk.names(REPLICA_SETS)) == ["web-same0", "web-same1"]
    assert (await get(desk))["status"]["collisionCount"] == 1


async def test_a_matching_replica_set_without_owner_is_adopted(desk: Desk) -> None:
    made = workload(replicas=2, image="nginx:0")
    await desk.create(REPLICA_SETS, {**made, "metadata": {"name": "old", "labels": {"app": "web"}}})
    await desk.settle()
    await create(desk, replicas=2)
    await desk.run_to_the_end()
    (owner,) = (await desk.get(REPLICA_SETS, "old"))["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Deployment", "web")
    assert await sizes(desk) == {"nginx:0": 0, "nginx": 2}


async def test_a_failed_creation_of_pods_sets_a_condition(desk: Desk) -> None:
    await desk.create(RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    with pytest.raises(Refused):
        await create(desk)
    for _ in range(3):  # it fails again, and the deployment sees it
        with contextlib.suppress(Refused):
            await desk.settle()
    failure = await condition(desk, "ReplicaFailure")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")


async def test_a_replica_set_that_cannot_be_created_is_reported(desk: Desk) -> None:
    hard = {"count/replicasets.apps": "0"}
    await desk.create(RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    with pytest.raises(Refused):
        await create(desk)
    found = await condition(desk, "Progressing")
    assert (found["status"], found["reason"]) == ("False", "ReplicaSetCreateError")
    (said,) = set(desk.events("ReplicaSetCreateError"))
    assert said.startswith('Failed to create new replica set "web-')


async def test_a_deployment_without_changes_writes_nothing(desk: Desk) -> None:
    await create(desk)
    await desk.run_to_the_end()
    before = desk.server.api.store.rv
    desk.forward(3600)
    await desk.settle()
    assert desk.server.api.store.rv == before
