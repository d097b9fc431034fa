"""The small scheduler: on a real API server, with nodes that nobody runs."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from kubeclient.client import Kube
from kubeclient.errors import Refused
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS, NODES, PODS
from localkube import scheduler
from localkube.nodes import Machine, node_object
from localkube.placement import NodeDemand, node_demand
from tests.kubeclient.api import api

PATIENCE_S = 60.0


def node(number: int, **fields: Any) -> Obj:
    return node_object(
        Machine(f"n{number}", IPv4Address(number + 1), IPv4Network((number << 8, 24)), **fields)
    )


def pod(name: str, cpu: str = "1", **spec: Any) -> Obj:
    resources = {"requests": {"cpu": cpu}}
    container = {"name": "c", "image": "busybox", "resources": resources, **spec.pop("c", {})}
    metadata = {"name": name, "namespace": "default"}
    return {
        "metadata": metadata,
        "spec": {"containers": [container], "automountServiceAccountToken": False, **spec},
    }


@contextlib.asynccontextmanager
async def scheduled(directory: Path, *nodes: Obj) -> AsyncIterator[Kube]:
    async with api(directory) as kube:
        for each in nodes:
            await kube.create(NODES, each)
            # Without a kubelet, nobody takes away the taint of a node that is not ready yet.
            path = NODES.path(name=each["metadata"]["name"])
            await kube.patch(path, {"spec": {"taints": each["spec"].get("taints")}})
        running = asyncio.create_task(scheduler.run(kube))
        try:
            yield kube
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def until(kube: Kube, name: str, reached: Callable[[Obj], object]) -> Obj:
    async with asyncio.timeout(PATIENCE_S):
        while not reached(found := await kube.get(PODS, name, "default")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def node_of(kube: Kube, name: str) -> str:
    found = await until(kube, name, lambda obj: obj["spec"].get("nodeName"))
    return str(found["spec"]["nodeName"])


async def reason_of(kube: Kube, name: str) -> str:
    def refused(obj: Obj) -> bool:
        return any(c["status"] == "False" for c in obj["status"].get("conditions") or ())

    found = await until(kube, name, refused)
    return str(found["status"]["conditions"][0]["message"])


async def test_pods_go_to_the_node_with_the_largest_free_share(tmp_path: Path) -> None:
    async with scheduled(tmp_path, node(0), node(1)) as kube:
        for name in ("a", "b"):
            await kube.create(PODS, pod(name))
        assert {await node_of(kube, "a"), await node_of(kube, "b")} == {"n0", "n1"}


async def test_no_node_gets_more_than_it_has_however_fast_pods_come(tmp_path: Path) -> None:
    async with scheduled(tmp_path, node(0, cpus=4), node(1, cpus=4)) as kube:
        for number in range(12):
            await kube.create(PODS, pod(f"p{number}"))
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = (await kube.list(PODS, "default")).items
                placed = [each["spec"].get("nodeName", "") for each in found]
                assert max(placed.count("n0"), placed.count("n1")) <= 4
                if placed.count("") == 4 and all(
                    each["spec"].get("nodeName") or each["status"].get("conditions")
                    for each in found
                ):
                    break
                await asyncio.sleep(0.01)


async def test_a_pod_that_waits_is_placed_when_there_is_room(tmp_path: Path) -> None:
    async with scheduled(tmp_path, node(0, cpus=1)) as kube:
        await kube.create(PODS, pod("first"))
        await node_of(kube, "first")
        await kube.create(PODS, pod("second"))
        assert await reason_of(kube, "second") == "0/1 nodes are available: 1 Insufficient cpu."
        options = {"gracePeriodSeconds": 0}
        await kube.delete(PODS, "first", "default", options=options)
        assert await node_of(kube, "second") == "n0"
        async with asyncio.timeout(PATIENCE_S):
            while True:
                events = (await kube.list(EVENTS, "default")).items
                if {"Scheduled", "FailedScheduling"} <= {each["reason"] for each in events}:
                    break
                await asyncio.sleep(0.01)


TAINT = {"key": "mine", "value": "yes", "effect": "NoSchedule"}
PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
X = {"example.com/x": "1"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {},
}
SELECTOR_WORDS = "node(s) didn't match Pod's node affinity/selector"


@pytest.mark.parametrize(
    ("fields", "wanted", "words"),
    [
        ({"taints": (TAINT,)}, {}, "node(s) had untolerated taint {mine: yes}"),
        ({}, {"nodeSelector": {"disk": "ssd"}}, SELECTOR_WORDS),
        ({}, {"cpu": "9"}, "Insufficient cpu"),
        (
            {},
            {
                "c": {
                    "resources": {
                        "requests": {"example.com/x": "1"},
                        "limits": {"example.com/x": "1"},
                    }
                }
            },
            "Insufficient example.com/x",
        ),
        (
            {},
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {},
                    }
                ]
            },
            "spec.topologySpreadConstraints is not supported by this scheduler",
        ),
    ],
)
async def test_a_refusal_has_the_words_of_kube_scheduler(
    tmp_path: Path, fields: dict[str, Any], wanted: dict[str, Any], words: str
) -> None:
    async with scheduled(tmp_path, node(0, **fields)) as kube:
        await kube.create(PODS, pod("p", **wanted))
        assert await reason_of(kube, "p") == f"0/1 nodes are available: 1 {words}."


async def test_a_cordoned_node_gets_no_pods_and_tolerations_are_honoured(tmp_path: Path) -> None:
    async with scheduled(tmp_path, node(0, taints=(TAINT,)), node(1)) as kube:
        await kube.patch(NODES.path(name="n1"), {"spec": {"unschedulable": True}})
        await kube.create(PODS, pod("plain"))
        assert "1 node(s) were unschedulable" in await reason_of(kube, "plain")
        tolerations = [{"key": "mine", "operator": "Exists"}]
        await kube.create(PODS, pod("tolerant", tolerations=tolerations))
        assert await node_of(kube, "tolerant") == "n0"


async def test_two_pods_with_one_host_port_do_not_share_a_node(tmp_path: Path) -> None:
    async with scheduled(tmp_path, node(0)) as kube:
        await kube.create(PODS, pod("a", c=PORT))
        assert await node_of(kube, "a") == "n0"
        await kube.create(PODS, pod("b", c=PORT))
        assert "didn't have free ports" in await reason_of(kube, "b")


async def test_pods_of_other_schedulers_and_gated_pods_are_left_alone(tmp_path: Path) -> None:
    async with scheduled(tmp_path, node(0)) as kube:
        await kube.create(PODS, pod("theirs", schedulerName="another"))
        await kube.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        await kube.create(PODS, pod("ours"))
        assert await node_of(kube, "ours") == "n0"
        for name in ("theirs", "gated"):
            found = await kube.get(PODS, name, "default")
            assert "nodeName" not in found["spec"]


async def test_higher_priority_goes_first(tmp_path: Path) -> None:
    async with scheduled(tmp_path, node(0, cpus=1)) as kube:
        await kube.create(PODS, pod("holder"))
        await node_of(kube, "holder")
        await kube.create(PODS, pod("low"))
        await reason_of(kube, "low")
        await kube.create(PODS, pod("high", priorityClassName="system-cluster-critical"))
        await reason_of(kube, "high")
        await kube.delete(PODS, "holder", "default", options={"gracePeriodSeconds": 0})
        assert await node_of(kube, "high") == "n0"
        assert "nodeName" not in (await kube.get(PODS, "low", "default"))["spec"]


async def test_a_toleration_of_another_effect_does_not_open_a_cordoned_node(
    tmp_path: Path,
) -> None:
    key = "node.kubernetes.io/unschedulable"
    async with scheduled(tmp_path, node(0)) as kube:
        await kube.patch(NODES.path(name="n0"), {"spec": {"unschedulable": True}})
        evicts = [{"key": key, "operator": "Exists", "effect": "NoExecute"}]
        await kube.create(PODS, pod("evicts", tolerations=evicts))
        assert "were unschedulable" in await reason_of(kube, "evicts")
        equal = [{"key": key, "effect": "NoSchedule"}]  # operator Equal, and the value is empty
        await kube.create(PODS, pod("tolerant", tolerations=equal))
        assert await node_of(kube, "tolerant") == "n0"


class Refusing:
    """A client whose calls of one method are refused, so many times."""

    def __init__(self, kube: Kube, method: str, times: int) -> None:
        self._kube, self._method, self._times = kube, method, times
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        if name != self._method or self.refused >= self._times:
            return getattr(self._kube, name)

        async def refuse(*_: object, **__: object) -> None:
            self.refused += 1
            raise Refused({"code": 403, "message": "a webhook says no"})

        return refuse


@contextlib.asynccontextmanager
async def scheduled_by(refusing: Refusing) -> AsyncIterator[None]:
    running = asyncio.create_task(scheduler.run(refusing))  # type: ignore[arg-type]
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_pod_that_nobody_may_bind_is_tried_at_a_steady_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes in between must not add timers, each of which would go on for ever."""
    monkeypatch.setattr(scheduler, "_RETRY_S", 0.05)
    async with api(tmp_path) as kube:
        await kube.create(NODES, node(0))
        await kube.patch(NODES.path(name="n0"), {"spec": {"taints": None}})
        await kube.create(PODS, pod("refused"))
        refusing = Refusing(kube, "bind", 1_000_000)
        async with scheduled_by(refusing), asyncio.timeout(PATIENCE_S):
            for number in range(30):
                labels = {"metadata": {"labels": {"n": str(number)}}}
                await kube.patch(PODS.path("default", "refused"), labels)
            seen, started = refusing.refused, time.monotonic()
            while refusing.refused < seen + 10:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert time.monotonic() - started > 8 * 0.05


async def test_a_reason_that_could_not_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_RETRY_S", 0.05)
    async with api(tmp_path) as kube:
        await kube.create(PODS, pod("p"))
        async with scheduled_by(Refusing(kube, "patch", 1)):
            assert "0/0 nodes are available" in await reason_of(kube, "p")


async def test_a_change_of_one_pod_does_not_look_at_all_pods_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    def counted(obj: Obj) -> NodeDemand:
        nonlocal looked_at
        looked_at += 1
        return node_demand(obj)

    async with scheduled(tmp_path, node(0, cpus=20)) as kube:
        for number in range(20):
            await kube.create(PODS, pod(f"p{number}"))
        assert await node_of(kube, "p19") == "n0"
        await kube.create(PODS, pod("waits"))
        await reason_of(kube, "waits")
        monkeypatch.setattr(scheduler, "node_demand", counted)
        for number in range(20):
            labels = {"metadata": {"labels": {"n": "changed"}}}
            await kube.patch(PODS.path("default", f"p{number}"), labels)
        await kube.create(PODS, pod("last"))
        await reason_of(kube, "last")
        assert looked_at < 100
