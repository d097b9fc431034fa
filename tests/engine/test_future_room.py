"""Where a pod will fit soonest, when pods end by themselves."""

from collections.abc import Mapping

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide_on
from gpupool.engine.future_room import FutureRoom, future_room
from gpupool.engine.room_scan import Search
from tests.engine.building import POLICY, cluster_of, gpu_node, gpu_pod, shared, whole


def put(cluster: ClusterModel, pod: PodRequest, node: str) -> None:
    found = decide_on(cluster, pod, POLICY, (node,))
    assert isinstance(found, Placement)
    cluster.hold(pod, *found)


def room(
    cluster: ClusterModel, ends: Mapping[str, float], *pods: PodRequest, taken: tuple[str, ...] = ()
) -> FutureRoom | None:
    search = Search(cluster, POLICY, lambda held, _: ends[held.pod.uid], 0.0, taken)
    return future_room(search, pods)


def test_the_node_that_is_free_soonest() -> None:
    cluster = cluster_of(gpu_node("a"), gpu_node("b"))
    put(cluster, whole("long", 2), "a")
    put(cluster, whole("short", 2), "b")
    found = room(cluster, {"long": 100, "short": 10}, whole("u", 2))
    assert found is not None
    assert found.seats[0].placement.node == "b"
    assert found.seats[0].leaving == {"short"}
    assert found.expected_s == 10


def test_at_the_same_time_the_node_on_which_less_is_kept_free() -> None:
    cluster = cluster_of(gpu_node("a"), gpu_node("b"))
    put(cluster, whole("early"), "a")
    put(cluster, whole("late"), "a")
    put(cluster, whole("both", 2), "b")
    found = room(cluster, {"early": 1, "late": 100, "both": 100}, whole("u", 2))
    assert found is not None
    assert found.seats[0].placement.node == "b"  # on a, a card would be idle for 99 s


def test_pods_that_need_not_leave_are_not_waited_for() -> None:
    cluster = cluster_of(gpu_node("a", 3))
    for at in range(3):
        put(cluster, whole(f"{at}"), "a")
    found = room(cluster, {"0": 5, "1": 50, "2": 7}, whole("u", 2))
    assert found is not None
    assert found.seats[0].leaving == {"0", "2"}


def test_shares_wait_for_enough_of_one_card() -> None:
    cluster = cluster_of(gpu_node("a", 1), gpu_node("b", 1))
    put(cluster, shared("small", 5), "a")
    put(cluster, shared("other", 10), "a")
    put(cluster, shared("large", 15), "b")
    found = room(cluster, {"small": 1, "other": 90, "large": 40}, shared("u", 8))
    assert found is not None
    assert found.seats[0].leaving == {"large"}


def test_cpu_is_waited_for_as_well() -> None:
    cluster = cluster_of(gpu_node("a", 2))
    put(cluster, gpu_pod("busy", resources={"cpu": 60_000, "pods": 1}), "a")
    big = whole("u", 1, resources={"cpu": 30_000, "pods": 1})
    found = room(cluster, {"busy": 33}, big)
    assert found is not None
    assert found.seats[0].leaving == {"busy"}
    assert found.expected_s == 33


def test_a_gang_gets_room_for_all_or_none() -> None:
    cluster = cluster_of(gpu_node("a"), gpu_node("b"))
    put(cluster, whole("x", 2), "a")
    put(cluster, whole("y", 2), "b")
    ends = {"x": 10.0, "y": 20.0}
    found = room(cluster, ends, whole("u", 2), whole("v", 2))
    assert found is not None
    assert {seat.placement.node for seat in found.seats} == {"a", "b"}
    assert found.expected_s == 20
    assert room(cluster, ends, whole("u", 2), whole("v", 2), whole("w", 2)) is None


def test_room_that_others_wait_for_is_left_alone() -> None:
    cluster = cluster_of(gpu_node("a"), gpu_node("b"))
    put(cluster, whole("x", 2), "a")
    put(cluster, whole("y", 2), "b")
    found = room(cluster, {"x": 1, "y": 2}, whole("u", 2), taken=("x",))
    assert found is not None
    assert found.seats[0].leaving == {"y"}


def test_a_pod_that_fits_on_no_empty_node_gets_none() -> None:
    cluster = cluster_of(gpu_node("a"))
    put(cluster, whole("x", 2), "a")
    assert room(cluster, {"x": 1}, whole("u", 3)) is None


def test_nothing_is_changed() -> None:
    cluster = cluster_of(gpu_node("a"))
    put(cluster, whole("x", 2), "a")
    room(cluster, {"x": 1}, whole("u", 2))
    assert cluster.held("u") is None
    assert cluster.held("x") is not None
    assert not cluster.reserved
