"""Labels and the inventory: what is written, what is left alone, what is removed."""

from gpupool.contract.inventory import inventory_of
from gpupool.contract.names import ANNOTATION_INVENTORY
from gpupool.core.gpu import Inventory
from tests.agent.nodes import M40, V100, Node

COUNT = "aliyun.accelerator/nvidia_count"


async def inventory(node: Node) -> Inventory:
    return inventory_of((await node.get())["metadata"]["annotations"][ANNOTATION_INVENTORY])


async def test_the_labels_are_those_of_the_documents(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.agent():
        await node.wait_labels(nvidia_name="Tesla-M40")
        assert await node.wait_event("GpusFound") == "found 1 x Tesla M40; driver 550.163.01"
    assert await node.labels() == {
        "aliyun.accelerator/nvidia_count": "1",
        "aliyun.accelerator/nvidia_mem": "12209MiB",
        "aliyun.accelerator/nvidia_name": "Tesla-M40",
        "alpha.kubernetes.io/nvidia-gpu-name": "Tesla-M40",
    }
    found = await inventory(node)
    assert [(card.model, card.memory_mib) for card in found.cards] == [("Tesla M40", 12209)]


async def test_labels_of_feature_discovery_are_optional(node: Node) -> None:
    await node.create()
    node.insert([V100, V100])
    async with node.agent(feature_labels=True):
        await node.wait_labels(nvidia_name="Tesla-V100-SXM2-16GB")
    labels = await node.labels()
    assert labels["nvidia.com/gpu.product"] == "Tesla-V100-SXM2-16GB"
    assert labels["nvidia.com/gpu.count"] == "2"
    assert labels["nvidia.com/gpu.memory"] == "16130"
    assert labels["nvidia.com/gpu.family"] == "volta"
    assert labels["nvidia.com/cuda.driver-version.full"] == "550.163.01"
    assert labels["nvidia.com/cuda.runtime.major"] == "12"


async def test_a_mixed_node_is_labelled_by_its_first_card(node: Node) -> None:
    await node.create()
    node.insert([M40, V100, V100])
    async with node.agent():
        await node.wait_labels(nvidia_count="3", nvidia_name="Tesla-M40", nvidia_mem="12209MiB")
    assert [card.units for card in (await inventory(node)).cards] == [11, 15, 15]


async def test_labels_are_removed_with_the_cards(node: Node) -> None:
    await node.create({"mine": "stays"})
    node.insert([M40])
    async with node.agent(feature_labels=True):
        await node.wait_labels(nvidia_count="1")
        node.insert([])
        await node.wait_labels(nvidia_count=None)
    assert await node.labels() == {"mine": "stays"}
    assert ANNOTATION_INVENTORY not in (await node.get())["metadata"].get("annotations", {})


async def test_a_new_agent_removes_what_the_old_one_applied(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.agent(feature_labels=True):
        await node.wait_labels(nvidia_count="1")
    node.insert([V100, V100])
    async with node.agent():
        await node.wait_labels(nvidia_count="2")
    assert not [key for key in await node.labels() if key.startswith("nvidia.com/")]


async def test_labels_of_others_are_not_overwritten(node: Node) -> None:
    await node.create({COUNT: "7"})
    node.insert([M40])
    async with node.agent():
        await node.wait_labels(nvidia_name="Tesla-M40")
        said = await node.wait_event("GpuLabelsNotOurs")
        assert said == f"somebody else has set {COUNT}: left as it is"
        node.insert([])
        await node.wait_labels(nvidia_name=None)
    assert await node.labels() == {COUNT: "7"}


async def test_a_label_that_somebody_else_took_over_is_left_alone(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.agent():
        await node.wait_labels(nvidia_count="1")
        await node.patch({"labels": {COUNT: "many"}})
        await node.wait_event("GpuLabelsNotOurs")
        assert (await node.labels())[COUNT] == "many"
        await node.patch({"labels": {COUNT: None}})  # and given up: ours again
        await node.wait_labels(nvidia_count="1")


async def test_removed_labels_and_inventory_are_written_again(node: Node) -> None:
    await node.create()
    node.insert([M40])
    async with node.agent():
        await node.wait_labels(nvidia_count="1")
        await node.patch({"labels": {COUNT: None}, "annotations": {ANNOTATION_INVENTORY: "{}"}})
        await node.wait_labels(nvidia_count="1")

        async def is_back() -> bool:
            text = (await node.get())["metadata"]["annotations"][ANNOTATION_INVENTORY]
            return bool(text != "{}")

        await node.wait(is_back)


async def test_a_missing_driver_is_reported_once_and_found_when_it_is_back(node: Node) -> None:
    await node.create()
    async with node.kubelet.running(), node.agent():
        assert "The node offers no GPUs" in await node.wait_event("NoGpuDriver")
        assert node.kubelet.registered == []
        node.insert([M40])
        await node.wait_labels(nvidia_count="1")
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (1, 1)})
        node.files.state.unlink()
        await node.wait_labels(nvidia_count=None)
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (0, 0)})
        node.insert([M40])
        await node.wait(lambda: node.kubelet.counts == {"nvidia.com/gpu": (1, 1)})


async def test_a_node_that_is_created_again_is_labelled_again(node: Node) -> None:
    from kubeclient.resources import NODES

    await node.create()
    node.insert([M40])
    async with node.agent():
        await node.wait_labels(nvidia_count="1")
        await node.kube.delete(NODES, "node-1")
        await node.create()
        await node.wait_labels(nvidia_count="1")
