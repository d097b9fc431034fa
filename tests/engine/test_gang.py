"""decide_gang places all pods of a group or none."""

import pytest

from gpupool.core.pods import PodRequest, PodTerm
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.gang import GangUnschedulable, decide_gang
from kubeclient.selectors import parse_label_selector
from tests.engine.building import POLICY, cluster_of, gpu_node, gpu_pod, shared, whole


def test_all_pods_of_a_gang_are_placed_together() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"))
    gang = [shared("s", 8), whole("w", 2), shared("t", 8)]
    found = decide_gang(cluster, gang, POLICY, 3)
    assert isinstance(found, dict)
    assert found["s"].node == found["t"].node != found["w"].node
    assert not list(cluster.holds())


def test_a_gang_with_one_pod_too_many_is_not_placed() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"))
    before = cluster.columns.card_free.copy()
    found = decide_gang(cluster, [whole(f"w{n}") for n in range(5)], POLICY, 5)
    assert isinstance(found, GangUnschedulable)
    assert (found.uid, found.placed) == ("w4", 4)
    assert found.message == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert (cluster.columns.card_free == before).all()


def started(cluster: ClusterModel, least: int, *gang: PodRequest) -> set[str]:
    found = decide_gang(cluster, gang, POLICY, least)
    assert not list(cluster.holds())
    return set(found) if isinstance(found, dict) else set()


def test_a_member_that_fits_nowhere_does_not_keep_the_others_from_starting() -> None:
    cluster = cluster_of(gpu_node("n"))
    assert started(cluster, 2, whole("huge", 9), whole("a"), whole("b")) == {"a", "b"}
    assert started(cluster, 3, whole("huge", 9), whole("a"), whole("b")) == set()


def test_small_members_start_when_a_large_one_would_take_their_room() -> None:
    cluster = cluster_of(gpu_node("n", 1))
    assert started(cluster, 2, shared("large", 15), shared("a", 7), shared("b", 8)) == {"a", "b"}


def test_as_many_large_members_are_left_out_as_needed() -> None:
    """A card has 15 units: two of 7 would leave none for the rest."""
    cluster = cluster_of(gpu_node("n", 1))
    gang = [shared("l1", 7), shared("l2", 7), shared("l3", 7), shared("s1", 4), shared("s2", 4)]
    assert started(cluster, 3, *gang) == {"l1", "s1", "s2"}


@pytest.mark.parametrize("node", ["m", "n"])
def test_a_member_that_fits_anywhere_leaves_the_only_node_of_another_one(node: str) -> None:
    cluster = cluster_of(gpu_node("m", 1), gpu_node("n", 1))
    only = shared("only", 14, node_name=node)
    assert started(cluster, 2, shared("any", 15), only) == {"any", "only"}


def test_members_that_need_different_things_share_the_room() -> None:
    node = gpu_node("n", 6, allocatable={"cpu": 6000, "memory": 2**40, "pods": 110})
    gang = [whole(f"cpu{n}", 1, resources={"cpu": 2000, "pods": 1}) for n in range(3)]
    gang += [whole(f"gpu{n}", 2, resources={"cpu": 1000, "pods": 1}) for n in range(3)]
    assert len(started(cluster_of(node), 4, *gang)) == 4


def test_a_member_may_need_another_one_beside_it() -> None:
    cluster = cluster_of(gpu_node("n", labels={"host": "n"}))
    term = PodTerm(parse_label_selector("role=leader"), "host", ("default",))
    worker = whole("worker", 1, affinity=(term,))
    leader = gpu_pod("leader", labels={"role": "leader"})
    assert started(cluster, 2, worker, leader) == {"worker", "leader"}
