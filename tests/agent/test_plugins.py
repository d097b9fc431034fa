"""The device plugins and a kubelet: registration, restarts, and what Allocate answers."""

import socket

import pytest

from gpupool.agent.plugin import ResourcePlugin
from gpupool.contract.names import NVIDIA_PLUGIN_SOCKET
from gpupool.contract.nodes import node_of
from kubeclient.kubeletapi.errors import BadSocketPath, RpcFailed
from kubeclient.kubeletapi.messages import (
    AllocateRequest,
    ContainerAllocateRequest,
    Mount,
    PreStartContainerRequest,
)
from tests.agent.nodes import M40, NAME, V100, Node

GPU, MEM, PERCENT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
WHOLE = {GPU: (2, 2)}
SHARED = {MEM: (26, 26), PERCENT: (200, 200)}


def asks(*ids: str) -> AllocateRequest:
    return AllocateRequest((ContainerAllocateRequest(ids),))


async def test_a_node_without_labels_offers_whole_cards(node: Node) -> None:
    await node.create()
    node.insert([M40, V100])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == WHOLE)
    (request,) = node.kubelet.registered
    assert request.version == "v1beta1"
    assert request.resource_name == GPU
    assert request.endpoint.startswith("gpupool-gpu-")


async def test_a_shared_node_offers_memory_and_compute_of_every_card(node: Node) -> None:
    await node.create({"cgpu": "true"})
    node.insert([M40, V100])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == SHARED)


async def test_a_change_of_the_label_switches_without_a_restart(node: Node) -> None:
    await node.create()
    node.insert([M40, V100])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == WHOLE)
        await node.patch({"labels": {"cgpu": "true"}})
        await node.wait(lambda: node.kubelet.counts == SHARED | {GPU: (0, 0)})
        await node.patch({"labels": {"cgpu": "false"}})
        nothing = {MEM: (0, 0), PERCENT: (0, 0)}
        await node.wait(lambda: node.kubelet.counts == WHOLE | nothing)


async def test_whole_cards_can_be_left_to_another_plugin(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.kubelet.running(), node.agent(whole_cards=False):
        await node.wait_labels(nvidia_count="1")
        await node.patch({"labels": {"cgpu": "true"}})
        await node.wait(lambda: set(node.kubelet.counts) == {MEM, PERCENT})


async def test_allocate_answers_every_container_the_same_and_shows_no_card(node: Node) -> None:
    await node.create()
    node.insert([M40, V100])
    mount = Mount("/usr/local/nvidia", "/opt/nvidia", read_only=True)
    async with node.kubelet.running(), node.agent(mounts=(mount,)):
        await node.wait(lambda: node.kubelet.counts == WHOLE)
        plugin = node.kubelet.plugin(GPU)
        first, second = await plugin.allocate(asks("0")), await plugin.allocate(asks("1"))
        assert first == second
        assert first.containers[0].envs == {"NVIDIA_VISIBLE_DEVICES": "void"}
        assert first.containers[0].mounts == (mount,)
        with pytest.raises(RpcFailed, match="this node has no device 7"):
            await plugin.allocate(asks("7"))
        options = await plugin.options()
        assert not options.preferred_allocation_available
        assert options.pre_start_required
        await plugin.pre_start_container(PreStartContainerRequest(("0",)))


async def test_allocate_tells_the_limiter_which_device_must_be_there(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.kubelet.running(), node.agent(control_devices=("/dev/nvidiactl",)):
        await node.wait(lambda: GPU in node.kubelet.counts)
        given = (await node.kubelet.plugin(GPU).allocate(asks("0"))).containers[0].envs
        assert given["GPUPOOL_CARD_CHECK"] == f"/dev/nvidiactl node {NAME}, way runtime"


async def test_the_limiter_is_mounted_where_shares_are_isolated(node: Node) -> None:
    await node.create({"cgpu": "true"})
    node.insert([M40])
    limiter = Mount("/usr/lib/gpupool", "/opt/limiter", read_only=True)

    async def mounts() -> tuple[Mount, ...]:
        return (await node.kubelet.plugin(MEM).allocate(asks("0"))).containers[0].mounts

    async def isolates() -> bool:
        return node_of(await node.get()).isolates

    async def is_free() -> bool:
        return not await isolates()

    async with node.kubelet.running(), node.agent(limiter=(limiter,)):
        await node.wait(lambda: MEM in node.kubelet.counts)
        assert await mounts() == (limiter,)
        await node.wait(isolates)
        await node.patch({"labels": {"cgpu.disable.isolation": "true"}})
        await node.wait(is_free)
        # Pods that were bound before may start after.
        assert await mounts() == (limiter,)


async def test_without_a_limiter_no_isolation_is_promised(node: Node) -> None:
    await node.create({"cgpu": "true"})
    node.insert([M40])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: MEM in node.kubelet.counts)
        found = node_of(await node.get())
        assert found.inventory is not None
        assert not found.isolates
        assert "SharesNotIsolated" in dict(await node.events())


async def test_the_agent_registers_again_when_the_kubelet_restarts(node: Node) -> None:
    await node.create()
    node.insert([M40, V100])
    async with node.agent():
        async with node.kubelet.running():
            await node.wait(lambda: node.kubelet.counts == WHOLE)
        async with node.kubelet.running():
            await node.wait(lambda: node.kubelet.counts == WHOLE)
    sockets = [request.endpoint for request in node.kubelet.registered]
    assert len(sockets) == len(set(sockets)) == 2


async def test_the_next_agent_registers_before_the_last_one_ends(node: Node) -> None:
    await node.create()
    node.insert([M40, V100])
    async with node.kubelet.running():
        async with node.agent():
            await node.wait(lambda: node.kubelet.counts == WHOLE)
            second = node.agent()
            await second.__aenter__()
            await node.wait(lambda: len(node.kubelet.registered) == 2)
            await node.wait(lambda: len(node.kubelet.lists) == 2)
        assert node.kubelet.counts == WHOLE
        await node.kubelet.plugin(GPU).allocate(asks("0"))
        await second.__aexit__(None, None, None)
    assert {entry[1:] for entry in node.kubelet.lists} == {(2, 2)}


async def test_only_sockets_of_killed_agents_are_removed(node: Node) -> None:
    await node.create()
    left, foreign = node.plugins / "gpupool-gpu-dead.sock", node.plugins / "other.sock"
    for path in (left, foreign):
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    async with node.agent():
        await node.wait(lambda: not left.exists())
    assert foreign.exists()


async def test_no_whole_cards_are_offered_beside_nvidias_plugin(node: Node) -> None:
    await node.create()
    node.insert([M40, V100])
    async with node.kubelet.running(), node.agent():
        await node.wait(lambda: node.kubelet.counts == WHOLE)
        with socket.socket(socket.AF_UNIX) as rival:
            rival.bind(str(node.plugins / NVIDIA_PLUGIN_SOCKET))
            rival.listen()
            assert "agent.wholeCards=false" in await node.wait_event("OtherGpuPlugin")
            await node.wait(lambda: not list(node.plugins.glob("gpupool-*")))
            assert len(node.kubelet.registered) == 1
        await node.wait(lambda: len(node.kubelet.registered) == 2)
        await node.wait(lambda: node.kubelet.counts == WHOLE)


async def test_leave_ends_all_list_streams() -> None:
    plugin = ResourcePlugin(GPU)
    lists = plugin.list_and_watch()
    await anext(lists)
    plugin.leave()
    with pytest.raises(StopAsyncIteration):
        await anext(lists)
    assert plugin.followers == 0
    await anext(plugin.list_and_watch())  # of the next kubelet


async def test_no_socket_is_left_when_the_agent_ends(node: Node) -> None:
    await node.create({"cgpu": "true"})
    node.insert([M40, V100])
    async with node.kubelet.running():
        async with node.agent():
            await node.wait(lambda: node.kubelet.counts == SHARED)
        assert [path.name for path in node.plugins.iterdir()] == ["kubelet.sock"]


async def test_a_unit_that_is_too_small_is_reported_as_an_event(node: Node) -> None:
    await node.create({"cgpu": "true"})
    node.insert([V100] * 16)
    async with node.kubelet.running(), node.agent(unit_mib=1):
        assert "Choose a larger unit" in await node.wait_event("GpuUnitTooSmall")
        await node.wait(lambda: node.kubelet.counts == {PERCENT: (1600, 1600)})


async def test_a_directory_with_a_too_long_path_ends_the_agent_with_a_message(node: Node) -> None:
    from gpupool.agent.run import run_agent
    from gpupool.hardware.simulated import SimulatedDriver

    await node.create()
    node.insert([M40])
    deep = node.plugins / ("x" * 80)
    deep.mkdir()
    (deep / "kubelet.sock").touch()
    driver = SimulatedDriver(node.files.state)
    with pytest.raises(BadSocketPath, match="use a directory with a shorter path"):
        await run_agent(node.settings(plugins=deep), driver, node.kube)
