"""All or nothing."""

from gpupool.engine.gang import GangUnschedulable, decide_gang
from tests.engine.building import POLICY, cluster_of, gpu_node, shared, whole


def test_all_find_a_place_beside_one_another() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"))
    gang = [shared("s", 8), whole("w", 2), shared("t", 8)]
    found = decide_gang(cluster, gang, POLICY)
    assert isinstance(found, list)
    assert found[0].node == found[2].node != found[1].node
    assert not list(cluster.holds())


def test_one_too_many_and_none_is_placed() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"))
    before = cluster.columns.card_free.copy()
    found = decide_gang(cluster, [whole(f"w{n}") for n in range(5)], POLICY)
    assert isinstance(found, GangUnschedulable)
    assert (found.uid, found.placed) == ("w4", 4)
    assert found.message == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert (cluster.columns.card_free == before).all()
