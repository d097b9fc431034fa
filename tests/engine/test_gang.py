"""decide_gang places all pods of a group or none."""

from gpupool.engine.gang import GangUnschedulable, decide_gang
from tests.engine.building import POLICY, cluster_of, gpu_node, shared, whole


def test_all_pods_of_a_gang_are_placed_together() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"))
    gang = [shared("s", 8), whole("w", 2), shared("t", 8)]
    found = decide_gang(cluster, gang, POLICY)
    assert isinstance(found, list)
    assert found[0].node == found[2].node != found[1].node
    assert not list(cluster.holds())


def test_a_gang_with_one_pod_too_many_is_not_placed() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"))
    before = cluster.columns.card_free.copy()
    found = decide_gang(cluster, [whole(f"w{n}") for n in range(5)], POLICY)
    assert isinstance(found, GangUnschedulable)
    assert (found.uid, found.placed) == ("w4", 4)
    assert found.message == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert (cluster.columns.card_free == before).all()
