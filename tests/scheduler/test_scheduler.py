"""The scheduler on a real API server: its writes, and its reactions to failures."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gpupool.contract.names import (
    ANNOTATION_ALLOCATION,
    ANNOTATION_INVENTORY,
    LABEL_POD_GROUP,
    LABEL_POD_GROUP_MIN,
)
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.writes import Write
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS, NODES, PODS, PRIORITY_CLASSES
from tests.scheduler.unreliable import Fault, unreliable
from tests.scheduler.world import (
    CARD_UNITS,
    add_node,
    add_pods,
    assert_no_card_over,
    bound,
    gpu_pod,
    scheduling,
    world,
)

HALF = CARD_UNITS // 2


async def eventually(look: Callable[[], object], within_s: float = 10.0) -> None:
    async with asyncio.timeout(within_s):
        while True:
            if look():
                return
            await asyncio.sleep(0.005)


async def events(kube: Kube, reason: str, count: int = 1) -> list[Obj]:
    async with asyncio.timeout(60):
        while True:
            found = [e for e in (await kube.list(EVENTS)).items if e["reason"] == reason]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.005)


async def condition(kube: Kube, name: str) -> Obj:
    async with asyncio.timeout(60):
        while True:
            pod = await kube.get(PODS, name, "default")
            for each in pod.get("status", {}).get("conditions") or ():
                if each["type"] == "PodScheduled":
                    return dict(each)
            await asyncio.sleep(0.005)


async def delete(kube: Kube, name: str) -> None:
    await kube.delete(PODS, name, "default", options={"gracePeriodSeconds": 0})


async def test_the_binding_carries_node_and_cards(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 2)
        await add_pods(kube, gpu_pod("p", units=3))
        [pod] = await bound(kube, 1)
        assert pod["spec"]["nodeName"] == "n"
        assert "GPU-n-" in pod["metadata"]["annotations"][ANNOTATION_ALLOCATION]
        [event] = await events(kube, "Scheduled")
        assert event["message"] == "Successfully assigned default/p to n"
        assert event["source"]["component"] == "gpupool-scheduler"
        assert (await condition(kube, "p"))["status"] == "True"


async def test_the_reason_for_pending_is_that_of_kube_scheduler(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        await add_pods(kube, gpu_pod("p", units=CARD_UNITS + 1))
        [event] = await events(kube, "FailedScheduling")
        said = await condition(kube, "p")
        assert (said["status"], said["reason"]) == ("False", "Unschedulable")
        assert said["message"] == event["message"]
        assert said["message"] == (
            "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem. preemption: "
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling. "
            f"GPUs: none of 1 has {CARD_UNITS + 1} units free, the best has {CARD_UNITS}."
        )
        assert event["type"] == "Warning"


async def test_a_cluster_without_nodes_is_reported(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_pods(kube, gpu_pod("p", units=1))
        said = await condition(kube, "p")
        assert said["message"] == "no nodes available to schedule pods"


async def test_freed_cards_go_to_pending_pods(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        await add_pods(kube, gpu_pod("first", units=CARD_UNITS))
        await bound(kube, 1)
        await add_pods(kube, gpu_pod("second", units=HALF))
        await condition(kube, "second")
        await delete(kube, "first")
        [pod] = await bound(kube, 1)
        assert pod["metadata"]["name"] == "second"


async def test_a_pod_that_ended_holds_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        await add_pods(kube, gpu_pod("first", units=CARD_UNITS))
        await bound(kube, 1)
        path = PODS.path("default", "first", "status")
        await kube.patch(path, {"status": {"phase": "Succeeded"}})
        await add_pods(kube, gpu_pod("second", units=CARD_UNITS))
        await bound(kube, 2)


async def test_a_new_node_takes_pending_pods(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_pods(kube, gpu_pod("p", units=2))
        await condition(kube, "p")
        await add_node(kube, "n", 1)
        await bound(kube, 1)


async def test_a_pod_with_a_scheduling_gate_is_ignored_until_the_gate_is_removed(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await add_node(kube, "n", 1)
        await add_pods(kube, gpu_pod("gated", units=1, schedulingGates=[{"name": "g"}]))
        await add_pods(kube, gpu_pod("open", units=1))
        [pod] = await bound(kube, 1)
        assert pod["metadata"]["name"] == "open"
        assert not scheduler.state.pending
        await kube.patch(PODS.path("default", "gated"), {"spec": {"schedulingGates": None}})
        await bound(kube, 2)


@pytest.mark.parametrize(
    "unknown",
    [
        (Fault.LOST_ANSWER,),
        (Fault.FAILED_AFTERWARDS,),
        (Fault.ASKED_TWICE,),
        (Fault.REFUSED, Fault.ASKED_TWICE),
    ],
)
async def test_without_a_certain_refusal_the_assignment_is_kept_and_the_pod_bound_once(
    tmp_path: Path, unknown: tuple[Fault, ...]
) -> None:
    async with world(tmp_path) as kube:
        way = unreliable(kube)
        faults = {"first": iter(unknown), "second": iter((Fault.LOST_REQUEST,))}

        def choose(method: str, path: str) -> Fault:
            if not path.endswith("/binding"):
                return Fault.NONE
            way.cut_watches()  # the result is seen only later
            return next(faults.get(path.split("/")[-2], iter(())), Fault.NONE)

        way.choose = choose
        await add_node(kube, "n", 1)
        await add_pods(kube, gpu_pod("first", units=HALF), gpu_pod("second", units=HALF))
        await add_pods(kube, gpu_pod("third", units=HALF))
        async with scheduling(way.kube):
            pods = await bound(kube, 2)
            await condition(kube, "third")
        assert {pod["metadata"]["name"] for pod in pods} == {"first", "second"}
        assert_no_card_over(pods)


async def test_a_refused_binding_releases_the_assignment(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        way = unreliable(kube)
        refused = [Fault.REFUSED, Fault.BUSY]
        way.choose = lambda _method, path: (
            refused.pop() if path.endswith("/p/binding") and refused else Fault.NONE
        )
        await add_node(kube, "n", 1)
        async with scheduling(way.kube):
            await add_pods(kube, gpu_pod("p", units=CARD_UNITS))
            await bound(kube, 1)
        assert not refused


async def test_watches_that_break_are_resumed(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        way = unreliable(kube)
        await add_node(kube, "n", 4)
        async with scheduling(way.kube):
            for number in range(3):
                await add_pods(kube, gpu_pod(f"p{number}", units=CARD_UNITS))
                way.cut_watches()
                await bound(kube, number + 1)


async def test_a_group_starts_whole_or_not_at_all(tmp_path: Path) -> None:
    labels = {LABEL_POD_GROUP: "g", LABEL_POD_GROUP_MIN: "3"}

    def member(name: str) -> Obj:
        pod = gpu_pod(name, units=CARD_UNITS)
        pod["metadata"]["labels"] = labels
        return pod

    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await add_node(kube, "n", 2)
        await add_pods(kube, member("a"), member("b"))
        said = await condition(kube, "a")
        assert said["message"] == (
            "pod group default/g waits for its pods: 2 of at least 3 are here."
        ) or said["message"].endswith("1 of at least 3 are here.")
        await add_pods(kube, member("c"))
        await eventually(lambda: len(scheduler.state.pending) == 3)
        await add_pods(kube, gpu_pod("alone", units=CARD_UNITS))
        await bound(kube, 1)  # nothing is held for the group
        await add_node(kube, "m", 2)
        await bound(kube, 4)


async def test_a_pod_of_higher_priority_preempts_on_one_card(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        urgent = {"metadata": {"name": "urgent"}, "value": 1000}
        await kube.create(PRIORITY_CLASSES, urgent)
        await add_node(kube, "n", 2)
        await add_pods(kube, *(gpu_pod(f"low{i}", units=HALF) for i in range(4)))
        pods = await bound(kube, 4)
        await add_pods(kube, gpu_pod("high", units=CARD_UNITS, priorityClassName="urgent"))
        victims = await events(kube, "Preempted", 2)
        high = await kube.get(PODS, "high", "default")
        assert high["status"]["nominatedNodeName"] == "n"
        names = {event["involvedObject"]["name"] for event in victims}
        on_card = {
            pod["metadata"]["name"]: pod["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"]
            for pod in pods
        }
        assert len({on_card[name] for name in names}) == 1
        first, second = sorted(names)
        told = await kube.get(PODS, first, "default")
        target = [c for c in told["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert target[0]["reason"] == "PreemptionByScheduler"
        # A small pod must not take the room that the first victim leaves.
        await delete(kube, first)
        await add_pods(kube, gpu_pod("small", units=HALF))
        await condition(kube, "small")
        await delete(kube, second)
        await eventually(lambda: not scheduler.state.preemption_claims.due_s() < float("inf"))
        high = next(p for p in await bound(kube, 3) if p["metadata"]["name"] == "high")
        assert high["spec"]["nodeName"] == "n"


REPORTED = "gpupool_scheduler_other_writers_total"


async def overcommit(kube: Kube) -> None:
    """By another scheduler, beside a pod of ours."""
    await add_node(kube, "n", 1)
    await add_pods(kube, gpu_pod("ours", units=HALF))
    [ours] = await bound(kube, 1)
    theirs = gpu_pod("theirs", units=CARD_UNITS, schedulerName="other")
    allocation = ours["metadata"]["annotations"][ANNOTATION_ALLOCATION]
    made = await kube.create(PODS, theirs)
    await kube.bind(made, "n", {ANNOTATION_ALLOCATION: allocation.replace(":8", ":16")})


async def test_an_overcommit_by_another_scheduler_is_reported_once(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        async with scheduling(kube) as scheduler:
            await overcommit(kube)
            [event] = await events(kube, "Overcommitted")
            assert event["involvedObject"]["name"] == "theirs"
            assert "Another scheduler" in event["message"]
            assert scheduler.metrics.registry.get_sample_value(REPORTED)
        async with scheduling(kube) as scheduler:  # the next leader
            await add_node(kube, "m", 1)
            await add_pods(kube, gpu_pod("next", units=HALF))
            await bound(kube, 3)
            assert not scheduler.metrics.registry.get_sample_value(REPORTED)


async def test_a_node_with_an_absurd_inventory_stops_nothing_and_is_named(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "bad", 1)
        text = (await kube.get(NODES, "bad"))["metadata"]["annotations"][ANNOTATION_INVENTORY]
        absurd = text.replace(str(CARD_UNITS * 1024), str(2**41))
        change = {"metadata": {"annotations": {ANNOTATION_INVENTORY: absurd}}}
        await kube.patch(NODES.path(name="bad"), change)
        [event] = await events(kube, "NotUnderstood")
        assert event["involvedObject"]["kind"] == "Node"
        assert event["involvedObject"]["name"] == "bad"
        assert "gpupool.io/inventory cannot be read: Expected `int`" in event["message"]
        await add_node(kube, "good", 1)
        await add_pods(kube, gpu_pod("p", units=HALF))
        [pod] = await bound(kube, 1)
        assert pod["spec"]["nodeName"] == "good"


@pytest.mark.parametrize("error", [KeyError("odd"), AttributeError("odd"), RecursionError("odd")])
async def test_an_internal_error_with_one_pod_does_not_stop_the_others(
    tmp_path: Path, error: Exception
) -> None:
    async with world(tmp_path) as kube, scheduling(kube) as scheduler:
        await add_node(kube, "n", 1)
        cycle = scheduler._cycle

        class Failing:
            def try_pod(self, pod: Pending) -> list[Write]:
                if pod.request.name == "odd":
                    raise error
                return cycle.try_pod(pod)

        scheduler._cycle = Failing()  # type: ignore[assignment]
        await add_pods(kube, gpu_pod("odd", units=1))
        said = await condition(kube, "odd")
        assert said["reason"] == "SchedulerError"
        await add_pods(kube, gpu_pod("plain", units=1))
        [pod] = await bound(kube, 1)
        assert pod["metadata"]["name"] == "plain"


async def test_an_unhealthy_card_takes_no_new_pods(tmp_path: Path) -> None:
    async with world(tmp_path) as kube, scheduling(kube):
        await add_node(kube, "n", 1)
        node = await kube.get(NODES, "n")
        annotations = node["metadata"]["annotations"]
        ill = {
            key: text.replace('"memoryMiB"', '"health":"unhealthy","memoryMiB"')
            for key, text in annotations.items()
        }
        await kube.patch(NODES.path(name="n"), {"metadata": {"annotations": ill}})
        await add_pods(kube, gpu_pod("p", units=1))
        await condition(kube, "p")
        await kube.patch(NODES.path(name="n"), {"metadata": {"annotations": annotations}})
        await bound(kube, 1)


async def test_a_new_scheduler_has_the_same_ledger_as_the_old_one(tmp_path: Path) -> None:
    async with world(tmp_path) as kube:
        await add_node(kube, "n", 4)
        await add_node(kube, "m", 4)
        await add_pods(kube, *(gpu_pod(f"p{i}", units=3) for i in range(20)))
        async with scheduling(kube) as old:
            await bound(kube, 20)
        async with scheduling(kube) as new:
            await eventually(lambda: new.is_synced)

            def known(scheduler: object) -> dict[str, tuple[str, str]]:
                places = scheduler.state.ledger.assignments()  # type: ignore[attr-defined]
                return {uid: (place.node, str(place.allocation)) for uid, place in places}

            assert known(new) == known(old)
