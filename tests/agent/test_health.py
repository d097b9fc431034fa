"""Faults while the agent runs: what the kubelet, the API and people see, and the recovery."""

import time
from typing import Any

import pytest

from gpupool.agent import run
from gpupool.contract.allocation import allocation_annotations
from gpupool.contract.inventory import inventory_of
from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.hardware.driver import Look, NotAnswering
from gpupool.hardware.simdriver_state import card_uuid
from gpupool.hardware.simulated import SimulatedDriver
from kubeclient.kubeletapi.messages import (
    AllocatableResourcesResponse,
    ContainerDevices,
    ContainerResources,
    ListPodResourcesResponse,
    PodResources,
)
from kubeclient.kubeletapi.serving import pod_resources_service, serving
from kubeclient.resources import NODES, PODS
from tests.agent.nodes import M40, NAME, Node

GPU, MEM = "nvidia.com/gpu", "aliyun.com/gpu-mem"


async def condition(node: Node) -> dict[str, Any]:
    conditions = (await node.get()).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == "GpuProblem"), {})


async def healths(node: Node) -> list[str]:
    text = (await node.get())["metadata"]["annotations"]["gpupool.io/inventory"]
    return [str(card.health) for card in inventory_of(text).cards]


async def wait_healths(node: Node, *wanted: str) -> None:
    async def are_so() -> bool:
        annotations = (await node.get())["metadata"].get("annotations", {})
        return "gpupool.io/inventory" in annotations and await healths(node) == list(wanted)

    await node.wait(are_so)


async def test_a_lost_card_and_its_return_are_reported_everywhere(node: Node) -> None:
    await node.create()
    node.insert([M40, M40])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 2)})
        node.fault(1, "xid=79")
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 1)})
        await wait_healths(node, "healthy", "lost")
        said = await node.wait_event("GpuLost")
        assert "is lost: XID 79: the card has fallen off the bus" in said

        async def is_told() -> bool:
            return (await condition(node)).get("status") == "True"

        await node.wait(is_told)
        assert (await condition(node))["message"] == said
        assert (await node.labels())["aliyun.accelerator/nvidia_count"] == "2"

        node.fault(1, "recover")
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 2)})
        assert "is healthy again" in await node.wait_event("GpuHealthy")

        async def is_over() -> bool:
            return (await condition(node)).get("status") == "False"

        await node.wait(is_over)
        assert (await condition(node))["message"] == "all cards are healthy"


async def test_all_shares_of_a_card_become_unhealthy_and_healthy_together(node: Node) -> None:
    await node.create({"cgpu": "true"})
    node.insert([M40, M40])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts.get(MEM) == (22, 22))
        node.fault(0, "ecc=1")
        await node.wait(lambda: node.kubelet.counts.get(MEM) == (22, 11))
        node.fault(0, "recover")
        await node.wait(lambda: node.kubelet.counts.get(MEM) == (22, 22))
    assert {entry[1:] for entry in node.kubelet.lists if entry[0] == MEM} == {(22, 22), (22, 11)}


async def test_a_person_cordons_and_uncordons_a_card(node: Node) -> None:
    await node.create()
    node.insert([M40, M40])
    orders = f'{{"{card_uuid(NAME, 0)}": "fan is loud"}}'
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 2)})
        await node.patch({"annotations": {"gpupool.io/cordoned-cards": orders}})
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 1)})
        await wait_healths(node, "cordoned", "healthy")
        await node.patch({"annotations": {"gpupool.io/cordoned-cards": "what?"}})
        await node.wait_event("BadCardOrders")  # and it stays out
        assert node.kubelet.counts == {GPU: (2, 1)}
        await node.patch({"annotations": {"gpupool.io/cordoned-cards": None}})
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 2)})


async def test_errors_are_forgotten_when_a_person_clears_them(node: Node) -> None:
    await node.create()
    node.insert([M40])
    pardon = {"annotations": {"gpupool.io/cleared-cards": f'{{"{card_uuid(NAME, 0)}": ""}}'}}

    async def is_carried_out() -> bool:
        annotations = (await node.get())["metadata"]["annotations"]
        return "gpupool.io/cleared-cards" not in annotations

    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == {GPU: (1, 1)})
        for _ in range(2):  # also the same order again
            node.fault(0, "xid=48")
            await node.wait(lambda: node.kubelet.counts == {GPU: (1, 0)})
            await node.patch(pardon)
            await node.wait(lambda: node.kubelet.counts == {GPU: (1, 1)})
            await node.wait(is_carried_out)


async def test_the_next_agent_still_knows_the_errors(node: Node) -> None:
    await node.create()
    node.insert([M40, M40])
    async with node.agent():
        await wait_healths(node, "healthy", "healthy")
        node.fault(0, "xid=48")
        node.fault(1, "lost")
        await wait_healths(node, "unhealthy", "lost")
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 0)})
        assert await healths(node) == ["unhealthy", "lost"]
    node.insert([M40, M40])  # a boot of the machine
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 2)})


class Hanging(SimulatedDriver):
    is_hanging = False

    async def look(self) -> Look:
        if self.is_hanging:
            raise NotAnswering("the NVIDIA driver did not answer in 30 s")
        return await super().look()


async def test_a_hang_of_the_driver_keeps_the_inventory_and_what_xids_did(node: Node) -> None:
    await node.create()
    node.insert([M40, M40])
    driver = Hanging(node.files.state)
    async with node.kubelet.running():
        async with node.agent(driver=driver):
            await node.wait(lambda: node.kubelet.counts == {GPU: (2, 2)})
            node.fault(1, "xid=48")
            await wait_healths(node, "healthy", "unhealthy")
            driver.is_hanging = True
            await wait_healths(node, "unhealthy", "unhealthy")
            await node.wait(lambda: node.kubelet.counts == {GPU: (2, 0)})
            said = await node.wait_event("NoGpuDriver")
            assert said.startswith("the NVIDIA driver did not answer in 30 s.")
            assert (await node.labels())["aliyun.accelerator/nvidia_count"] == "2"
        # The next agent starts while the driver still hangs.
        async with node.agent(driver=driver):
            driver.is_hanging = False
            await wait_healths(node, "healthy", "unhealthy")
            await node.wait(lambda: node.kubelet.counts == {GPU: (2, 1)})


async def test_a_bad_card_does_not_take_the_device_of_a_pod_on_a_good_one(node: Node) -> None:
    """The kubelet gave device 0 to a pod on card 1, which then breaks: device 1 must stay free."""
    await node.create()
    node.insert([M40, M40])
    share = CardShare(card_uuid(NAME, 1), 1, units=11, memory_mib=12209, card_units=11)
    allocation = Allocation((ContainerGpus("main", (share,), Isolation.WHOLE),))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "annotations": allocation_annotations(allocation, now_ns=1),
        },
        "spec": {"nodeName": NAME, "containers": [{"name": "main", "image": "pause"}]},
    }
    await node.kube.create(PODS, pod)
    devices = (ContainerDevices(GPU, ("0",)),)
    held = PodResources("p", "default", (ContainerResources("main", devices),))
    service = pod_resources_service(
        lambda: ListPodResourcesResponse((held,)), AllocatableResourcesResponse
    )
    socket = node.plugins.parent / "pod-resources.sock"
    async with (
        node.kubelet.running(),
        serving(socket, [service]),
        node.agent(pod_resources=socket),
    ):
        await node.wait(lambda: node.kubelet.counts == {GPU: (2, 2)})
        node.fault(1, "lost")
        await node.wait(lambda: node.kubelet.unhealthy(GPU) == {"0"})


async def test_a_deleted_node_is_waited_for(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.agent():
        await wait_healths(node, "healthy")
        await node.kube.delete(NODES, NAME)
        node.fault(0, "lost")
        await node.create()
        await wait_healths(node, "lost")


class Clocks:
    """In place of the module `time`: the time of day, and the one that only goes on."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.day_s = 2e9

    def time(self) -> float:
        return self.day_s

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


async def test_a_clock_that_is_set_back_keeps_no_card_suspect(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks()
    monkeypatch.setattr(run, "time", clocks)
    await node.create()
    node.insert([M40])
    async with node.kubelet.running(), node.agent():
        await wait_healths(node, "healthy")
        node.fault(0, "xid=32")
        await wait_healths(node, "suspect")
        clocks.day_s -= 365 * 86_400
        clocks.ahead_s += 7 * 86_400
        await wait_healths(node, "healthy")
