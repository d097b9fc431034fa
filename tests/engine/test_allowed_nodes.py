"""What nodes allow is shared by pods, and equals what is found out for each pod alone."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.pods import PodRequest
from gpupool.engine import allowed_nodes as module
from gpupool.engine.allowed_nodes import allowed_nodes
from gpupool.engine.cluster import ClusterModel
from tests.engine import samples
from tests.engine.building import cluster_of, gpu_node, shared

_FIELDS = (
    *("node_selector", "node_terms", "tolerations", "node_name", "volume_terms", "volume_zones"),
    "gpus",
)


def alone(cluster: ClusterModel, pod: PodRequest) -> tuple[list[Any], bool]:
    kept, cluster.allowed = cluster.allowed, {}
    found = allowed_nodes(cluster, pod)
    cluster.allowed = kept
    return found.nodes.tolist(), found.has_soft_taints


def mixed(one: PodRequest, other: PodRequest) -> list[PodRequest]:
    """The pod, and pods that differ from it in one field that nodes may care about."""
    changed = [replace(one, **{name: getattr(other, name)}) for name in _FIELDS]
    return [one, *changed, replace(one, runtime_class="nvidia")]


@given(data=st.data(), theme=st.sampled_from(["nodes", "gpus"]))
@settings(deadline=None, max_examples=150)
def test_shared_nodes_equal_those_found_for_each_pod_alone(data: st.DataObject, theme: str) -> None:
    cluster = ClusterModel()
    pods = mixed(data.draw(samples.pods(theme)), data.draw(samples.pods(theme)))
    for _ in range(data.draw(st.integers(1, 3))):
        cluster.set_node(data.draw(samples.themed_nodes(theme)))
        if data.draw(samples.often(False, st.booleans())):
            cluster.remove_node(data.draw(st.sampled_from(samples.NODE_NAMES)))
        for pod in pods:
            found = allowed_nodes(cluster, pod)
            assert (found.nodes.tolist(), found.has_soft_taints) == alone(cluster, pod)


def test_pods_that_differ_in_what_they_ask_for_share_one() -> None:
    cluster = cluster_of(gpu_node("a"))
    assert allowed_nodes(cluster, shared("u", 1)) is allowed_nodes(cluster, shared("v", 2))


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    cluster = cluster_of(gpu_node("a"))
    for number in range(10):
        allowed_nodes(cluster, shared("u", 1, node_selector=(("n", str(number)),)))
    assert len(cluster.allowed) == 3
