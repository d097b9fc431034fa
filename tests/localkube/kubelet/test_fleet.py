from pathlib import Path

import pytest

from kubeclient.client import STRATEGIC_PATCH
from kubeclient.resources import LEASES, NODES, PODS
from localkube.names import DEFAULT as NAMES
from tests.localkube.kubelet.world import (
    NODE,
    condition,
    container,
    is_ready,
    node,
    phase_is,
    pod,
    timers,
    world,
)

RUN_SECONDS = {NAMES.run_seconds_annotation: "0"}


async def test_a_node_becomes_ready_and_holds_a_lease(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        found = await here.kube.get(NODES, NODE)
        reasons = {c["type"]: (c["status"], c["reason"]) for c in found["status"]["conditions"]}
        assert reasons == {
            "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
            "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
            "PIDPressure": ("False", "KubeletHasSufficientPID"),
            "Ready": ("True", "KubeletReady"),
        }
        lease = await here.kube.get(LEASES, NODE, "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == NODE
        assert lease["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]


async def test_nodes_of_others_are_left_alone(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        other = node("other")
        del other["metadata"]["labels"]
        await here.kube.create(NODES, other)
        await here.run(pod("p"))  # by now the other has been seen, too
        assert "conditions" not in (await here.kube.get(NODES, "other"))["status"]
        assert here.fleet.streams("other") is None


async def test_a_timer_pod_runs_after_one_write(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        found = await here.run(pod("p"))
        assert phase_is("Running")(found)
        assert container(found)["state"].keys() == {"running"}
        assert container(found)["started"]
        assert found["status"]["podIP"].startswith("10.1.0.")
        assert found["status"]["hostIP"] == "192.168.0.1"
        assert found["status"]["qosClass"] == "BestEffort"
        assert found["status"]["observedGeneration"] == 1
        await here.run(pod("marker"))
        written = [resource for resource, name in here.writes if name.startswith("p")]
        assert written == ["pods", "pods"]  # made, and running


async def test_a_deleted_timer_pod_goes(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        await here.run(pod("p"))
        await here.delete("p")
        await here.until_gone("p")


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
async def test_a_timer_that_is_over_ends_its_pod(tmp_path: Path, code: str, phase: str) -> None:
    annotations = RUN_SECONDS | {NAMES.exit_code_annotation: code}
    async with world(tmp_path, timers(tmp_path)) as here:
        found = await here.run(
            pod("p", annotations=annotations, restartPolicy="Never"), phase_is(phase)
        )
        assert container(found)["state"]["terminated"]["exitCode"] == int(code)


async def test_a_timer_that_always_restarts_has_a_back_off(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        found = await here.run(
            pod("p", annotations=RUN_SECONDS), lambda p: container(p).get("restartCount", 0) >= 3
        )
        assert phase_is("Running")(found)
        event = await here.until_event("BackOff", "p")
        assert event["message"] == (
            f"Back-off restarting failed container c in pod p_default({found['metadata']['uid']})"
        )


async def test_a_pod_beyond_what_the_node_has_is_rejected(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        big = {"resources": {"requests": {"cpu": "5"}}}
        await here.run(pod("first", container=big))
        found = await here.run(pod("second", container=big), phase_is("Failed"))
        assert found["status"]["reason"] == "OutOfcpu"
        assert found["status"]["message"] == (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 5000, "
            "used: 5000, capacity: 8000"
        )
        assert "containerStatuses" not in found["status"]
        await here.until_event("OutOfcpu", "second")
        await here.delete("first")
        await here.until_gone("first")
        await here.run(pod("third", container=big))


async def test_a_finished_pod_frees_what_it_took(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        big = {"resources": {"requests": {"cpu": "5"}}}
        once = pod("first", container=big, annotations=RUN_SECONDS, restartPolicy="Never")
        await here.run(once, phase_is("Succeeded"))
        await here.run(pod("second", container=big))


async def test_pods_wait_for_their_node(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        early = pod("early")
        early["spec"]["nodeName"] = "n1"
        await here.create(early)
        await here.kube.create(NODES, node("n1"))
        await here.until("early", is_ready)


async def test_a_stopped_kubelet_does_nothing_until_it_goes_on(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        path = NODES.path(name=NODE)
        stop = {"metadata": {"annotations": {NAMES.kubelet_annotation: "stopped"}}}
        await here.kube.patch(path, stop)
        await here.kube.create(NODES, node("n1"))
        await here.create(pod("waits"))
        marker = pod("marker")
        marker["spec"]["nodeName"] = "n1"
        await here.run(marker)  # by now the other would run as well
        assert phase_is("Pending")(await here.kube.get(PODS, "waits", "default"))
        await here.kube.patch(path, {"metadata": {"annotations": {NAMES.kubelet_annotation: None}}})
        await here.until("waits", is_ready)


async def test_timers_go_on_over_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        before = await here.run(pod("p"))
    async with world(tmp_path, timers(tmp_path)) as here:
        await here.run(pod("marker"))
        after = await here.kube.get(PODS, "p", "default")
        assert after["status"] == before["status"]
        await here.delete("p")
        await here.until_gone("p")


NOT_READY = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}


async def test_a_pod_that_the_node_controller_took_for_lost_is_ready_again(tmp_path: Path) -> None:
    """As after a late lease, while the kubelet was only slow."""
    async with world(tmp_path, timers(tmp_path)) as here:
        await here.run(pod("p"))
        path = PODS.path("default", "p", "status")
        await here.kube.patch(path, NOT_READY, content_type=STRATEGIC_PATCH)
        found = await here.until("p", is_ready)
        assert condition(found, "ContainersReady")["status"] == "True"


async def test_a_pod_that_was_taken_for_lost_during_a_restart_is_ready_again(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        await here.run(pod("p"))
        stop = {"metadata": {"annotations": {NAMES.kubelet_annotation: "stopped"}}}
        await here.kube.patch(NODES.path(name=NODE), stop)
        await here.until_node(lambda _: here.fleet.streams(NODE) is not None)
        path = PODS.path("default", "p", "status")
        await here.kube.patch(path, NOT_READY, content_type=STRATEGIC_PATCH)
        go_on = {"metadata": {"annotations": {NAMES.kubelet_annotation: None}}}
    async with world(tmp_path, timers(tmp_path)) as here:
        await here.kube.patch(NODES.path(name=NODE), go_on)
        await here.until("p", is_ready)


async def test_a_readiness_gate_that_somebody_opens_makes_the_pod_ready(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        gated = pod("p", readinessGates=[{"conditionType": "example.com/ok"}])
        await here.run(gated, lambda p: condition(p, "ContainersReady").get("status") == "True")
        gate = {"status": {"conditions": [{"type": "example.com/ok", "status": "True"}]}}
        path = PODS.path("default", "p", "status")
        await here.kube.patch(path, gate, content_type=STRATEGIC_PATCH)
        await here.until("p", is_ready)


async def test_a_deadline_ends_the_pod(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        found = await here.run(pod("p", activeDeadlineSeconds=1), phase_is("Failed"))
        assert found["status"]["reason"] == "DeadlineExceeded"
        assert found["status"]["message"] == (
            "Pod was active on the node longer than the specified deadline"
        )


async def test_init_containers_and_sidecars_of_timers(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        inits = [
            {"name": "first", "image": "busybox"},
            {"name": "side", "image": "busybox", "restartPolicy": "Always"},
        ]
        once = pod("p", initContainers=inits, annotations=RUN_SECONDS, restartPolicy="Never")
        found = await here.run(once, phase_is("Succeeded"))
        assert container(found, "first")["state"]["terminated"]["exitCode"] == 0
        assert container(found, "side")["state"]["terminated"]["exitCode"] == 143
        assert condition(found, "Initialized")["reason"] == "PodCompleted"


async def test_an_annotation_that_is_no_number_causes_an_event(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        await here.run(pod("p", annotations={NAMES.run_seconds_annotation: "soon"}))
        event = await here.until_event("BadAnnotation", "p")
        assert event["message"] == (
            "Annotation localkube.internal/run-seconds has no effect: wanted a number, found 'soon'"
        )


async def test_a_later_pod_of_the_same_name_is_another_pod(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        first = await here.run(pod("p"))
        await here.delete("p", grace_s=0)
        second = await here.run(pod("p"))
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        assert first["status"]["podIP"] != second["status"]["podIP"]


async def test_usage_and_logs_of_timers(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        found = await here.run(pod("p"))
        assert here.fleet.pod_usage() == {
            ("default", "p"): [{"name": "c", "usage": {"cpu": "1000000n", "memory": "1024Ki"}}]
        }
        assert here.fleet.node_usage()[NODE] == {"cpu": "51000000n", "memory": "263168Ki"}
        assert await here.log(found) == b"This container is a timer: nothing runs in it.\n"


async def test_the_runtime_is_named_by_the_pod_its_namespace_or_its_node(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        annotated = {"metadata": {"annotations": {NAMES.runtime_annotation: "timer"}}}
        await here.kube.patch("/api/v1/namespaces/default", annotated)
        process = {NAMES.runtime_annotation: "process"}
        found = await here.run(pod("process", "sleep", "1000", annotations=process))
        assert await here.log(found) == b""
        assert b"timer" in await here.log(await here.run(pod("timer")))


async def test_a_removed_node_gives_up_its_pods(tmp_path: Path) -> None:
    async with world(tmp_path, timers(tmp_path)) as here:
        await here.run(pod("p"))
        await here.kube.delete(NODES, NODE)
        await here.kube.create(NODES, node())
        await here.until_node(is_ready)
        await here.delete("p")
        await here.until_gone("p")
