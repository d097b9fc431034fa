"""DaemonSets on a real API server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.objects import Obj
from kubeclient.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from localkube.controllers import daemon_set, daemon_set_pods
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import image, template, workload


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, daemon_set.controller()) as desk:
        for name in ("n1", "n2", "n3"):
            await desk.add_node(name)
        yield desk


async def create(desk: Desk, **spec: Any) -> None:
    await desk.create(DAEMON_SETS, workload(**spec))
    await desk.settle()


async def status(desk: Desk) -> Obj:
    found: Obj = (await desk.get(DAEMON_SETS, "web"))["status"]
    return found


async def by_node(desk: Desk) -> dict[str, str]:
    """Node -> image, of the pods that are not terminating."""
    return {
        daemon_set_pods.node_of(pod): pod["spec"]["containers"][0]["image"]
        for pod in await desk.all(PODS)
        if "deletionTimestamp" not in pod["metadata"]
    }


async def place(desk: Desk) -> None:
    """Binds pods as the scheduler would."""
    for pod in await desk.all(PODS):
        if not pod["spec"].get("nodeName"):
            await desk.bind(pod["metadata"]["name"], daemon_set_pods.node_of(pod))


async def run_to_the_end(desk: Desk) -> None:
    for _ in range(50):
        before = desk.server.api.store.rv
        await place(desk)
        await desk.run_pods()
        await desk.finish_deletions()
        await desk.settle()
        if desk.server.api.store.rv == before:
            return


async def test_every_node_gets_a_pod(desk: Desk) -> None:
    await create(desk)
    assert sorted(await by_node(desk)) == ["n1", "n2", "n3"]
    assert len(desk.events("SuccessfulCreate")) == 3
    await desk.add_node("n4")
    await desk.settle()
    assert "n4" in await by_node(desk)


async def test_the_status_is_what_kubernetes_writes(desk: Desk) -> None:
    await create(desk)
    assert await status(desk) == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 0,
        "numberUnavailable": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
    }
    await run_to_the_end(desk)
    assert await status(desk) == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "numberAvailable": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
    }


async def test_a_deleted_pod_comes_back_after_it_has_gone(desk: Desk) -> None:
    await create(desk)
    await run_to_the_end(desk)
    name = (await desk.names(PODS))[0]
    await desk.delete(PODS, name)
    await desk.settle()
    assert len(await desk.names(PODS)) == 3
    await desk.finish_deletions()
    await desk.settle()
    found = await desk.names(PODS)
    assert name not in found
    assert len(found) == 3


async def test_labels_and_taints_of_nodes_decide(desk: Desk) -> None:
    await desk.patch(NODES, "n1", {"metadata": {"labels": {"disk": "ssd"}}})
    await create(desk, template=template(nodeSelector={"disk": "ssd"}))
    assert sorted(await by_node(desk)) == ["n1"]
    await desk.patch(NODES, "n2", {"metadata": {"labels": {"disk": "ssd"}}})
    await desk.patch(NODES, "n1", {"metadata": {"labels": {"disk": "hdd"}}})
    await desk.settle()
    assert sorted(await by_node(desk)) == ["n2"]
    await run_to_the_end(desk)
    taint = {"key": "mine", "effect": "NoSchedule"}
    await desk.patch(NODES, "n2", {"spec": {"taints": [taint]}})
    await desk.settle()
    assert sorted(await by_node(desk)) == ["n2"]  # its pod may stay
    found = await status(desk)
    assert (found["desiredNumberScheduled"], found["numberMisscheduled"]) == (0, 1)
    await desk.patch(NODES, "n2", {"spec": {"taints": [{**taint, "effect": "NoExecute"}]}})
    await desk.settle()
    assert await by_node(desk) == {}


async def test_a_heartbeat_of_a_node_reconciles_no_daemon_set(desk: Desk) -> None:
    await create(desk)
    status_path = NODES.path(name="n1", subresource="status")
    beat = {"status": {"nodeInfo": {"kernelVersion": "5.10"}}}
    await desk.kube.patch(status_path, beat)
    await desk._catch_up()
    assert not desk.waiting


async def test_an_update_replaces_one_after_the_other(desk: Desk) -> None:
    await create(desk)
    await run_to_the_end(desk)
    await desk.patch(DAEMON_SETS, "web", image("nginx:2"))
    await desk.settle()
    assert sorted((await by_node(desk)).values()) == ["nginx", "nginx"]
    await desk.finish_deletions()
    await desk.settle()
    assert sorted((await by_node(desk)).values()) == ["nginx", "nginx", "nginx:2"]
    assert (await status(desk))["updatedNumberScheduled"] == 1
    await run_to_the_end(desk)
    assert sorted((await by_node(desk)).values()) == ["nginx:2"] * 3
    assert (await status(desk))["observedGeneration"] == 2


async def test_a_surge_makes_the_new_pod_first(desk: Desk) -> None:
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    await create(desk, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    await run_to_the_end(desk)
    await desk.patch(DAEMON_SETS, "web", image("nginx:2"))
    await desk.settle()
    assert len(await desk.names(PODS)) == 4
    await run_to_the_end(desk)
    assert sorted((await by_node(desk)).values()) == ["nginx:2"] * 3


async def test_on_delete_only_deleted_pods_are_updated(desk: Desk) -> None:
    await create(desk, updateStrategy={"type": "OnDelete"})
    await run_to_the_end(desk)
    await desk.patch(DAEMON_SETS, "web", image("nginx:2"))
    await run_to_the_end(desk)
    assert sorted((await by_node(desk)).values()) == ["nginx"] * 3
    await desk.delete(PODS, (await desk.names(PODS))[0])
    await run_to_the_end(desk)
    assert sorted((await by_node(desk)).values()) == ["nginx", "nginx", "nginx:2"]


async def test_revisions_are_kept_for_going_back(desk: Desk) -> None:
    await create(desk, revisionHistoryLimit=1)
    for name in ("nginx:2", "nginx:3"):
        await run_to_the_end(desk)
        await desk.patch(DAEMON_SETS, "web", image(name))
    await run_to_the_end(desk)
    found = {r["revision"]: r for r in await desk.all(CONTROLLER_REVISIONS)}
    assert sorted(found) == [2, 3]
    labels = found[3]["metadata"]["labels"]
    assert found[3]["metadata"]["name"] == f"web-{labels['controller-revision-hash']}"
    pod = (await desk.all(PODS))[0]
    hash_label = pod["metadata"]["labels"]["controller-revision-hash"]
    assert hash_label == labels["controller-revision-hash"]
    assert pod["metadata"]["labels"]["pod-template-generation"] == "3"


async def test_a_failed_daemon_pod_is_replaced_with_growing_delays(desk: Desk) -> None:
    await create(desk, template=template(nodeSelector={"kubernetes.io/hostname": "n1"}))
    (pod,) = await desk.all(PODS)
    await desk.set_phase(pod, "Failed")
    await desk.settle()
    (text,) = desk.events("FailedDaemonPod")
    name = pod["metadata"]["name"]
    assert text == f"Found failed daemon pod default/{name} on node n1, will try to kill it"
    (pod,) = await desk.all(PODS)
    assert pod["status"]["phase"] == "Pending"
    await desk.set_phase(pod, "Failed")
    await desk.settle()
    assert [p["status"]["phase"] for p in await desk.all(PODS)] == ["Failed"]
    assert 0 < desk.again_s("web") <= 1
    desk.forward(1)
    await desk.settle()
    assert [p["status"]["phase"] for p in await desk.all(PODS)] == ["Pending"]


async def test_no_pod_is_created_twice_while_the_mirror_is_late(desk: Desk) -> None:
    await desk.create(DAEMON_SETS, workload())
    await desk._catch_up()
    take = desk.mirrors.of(PODS)._take
    desk.mirrors.of(PODS)._take = lambda event: None  # type: ignore[method-assign]
    for _ in range(3):
        await desk.controllers[0].reconcile(("default", "web"), desk.contexts[0])
    desk.mirrors.of(PODS)._take = take  # type: ignore[method-assign]
    assert len(await desk.names(PODS)) == 3
