"""Runtime classes: which nodes suit a pod, in which words, and what the Binding carries."""

from dataclasses import replace

from gpupool.contract.allocation import allocation_annotations, allocation_of, allocation_text
from gpupool.core.gpu import Allocation
from gpupool.core.ways import Way, Ways
from gpupool.engine.cluster import ClusterModel
from tests.engine.building import cards, cluster_of, gpu_node, gpu_pod, place, shared, whole

BY_CLASS = Ways(Way.RUNTIME_CLASS, runtime_class="nvidia")


def cluster_with(ways: Ways) -> ClusterModel:
    return cluster_of(gpu_node("a", inventory=replace(cards("a", 2), ways=ways)))


def test_a_pod_without_the_class_does_not_go_where_a_class_brings_the_cards() -> None:
    cluster = cluster_with(BY_CLASS)
    words = str(place(cluster, whole("u")))
    assert "gave GPUs only to pods with runtimeClassName nvidia" in words
    assert isinstance(place(cluster, whole("u", runtime_class="nvidia")), Allocation)


def test_a_pod_with_a_class_of_nvidia_does_not_go_where_a_plugin_brings_the_cards() -> None:
    cluster = cluster_with(Ways(Way.NRI))
    words = str(place(cluster, shared("u", 1, runtime_class="nvidia")))
    assert "had no runtime class nvidia for GPUs" in words
    # Other classes are no concern of ours.
    assert isinstance(place(cluster, shared("u", 1, runtime_class="kata")), Allocation)


def test_a_pod_without_gpus_goes_anywhere() -> None:
    cluster = cluster_with(BY_CLASS)
    assert not isinstance(place(cluster, gpu_pod("u")), str)


def test_the_binding_tells_nvidias_plugin_which_cards_and_only_there() -> None:
    by_plugin = Ways(Way.NVIDIA_NRI, cdi_kind="k8s.device-plugin.nvidia.com/gpu")
    cluster = cluster_with(by_plugin)
    given = place(cluster, whole("u", 2))
    assert isinstance(given, Allocation)
    found = allocation_annotations(given, now_ns=1)
    uuids = [share.uuid for share in given.containers[0].shares]
    name = given.containers[0].container
    assert found[f"nvidia.cdi.k8s.io/container.{name}"] == ",".join(
        f"k8s.device-plugin.nvidia.com/gpu={uuid}" for uuid in uuids
    )
    # A resize writes the annotations again, from what it reads.
    assert allocation_of(allocation_text(given)) == given
    elsewhere = place(cluster_of(gpu_node("a")), whole("u", 2))
    assert isinstance(elsewhere, Allocation)
    assert not any("cdi.k8s.io" in key for key in allocation_annotations(elsewhere, now_ns=1))
