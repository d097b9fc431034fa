"""A cluster that grows, shrinks and changes while decisions are made from it."""

from typing import Any

import pytest

from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest, PodTerm, Spread
from gpupool.engine.candidates import NOT_KNOWN, candidates
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide, decide_on
from gpupool.engine.discrepancies import excesses, excesses_on
from gpupool.engine.verdict_cache import KEPT
from kubeclient.selectors import parse_label_selector
from tests.engine.building import POLICY, ROOMY, cluster_of, gpu_node, shared, whole

APP = parse_label_selector("app=a")


def zoned(name: str, zone: str) -> NodeInfo:
    return NodeInfo(name, labels={"zone": zone}, allocatable=ROOMY)


def app(uid: str, **more: Any) -> PodRequest:
    return PodRequest(uid, "default", uid, {"pods": 1}, labels={"app": "a"}, **more)


def node_of(cluster: ClusterModel, pod: PodRequest) -> str:
    decision = decide(cluster, pod, POLICY)
    assert isinstance(decision, Placement)
    return decision.node


def test_counts_and_labels_survive_growth() -> None:
    cluster = cluster_of(zoned("n0", "a"), zoned("n1", "b"))
    apart = app("x", anti_affinity=(PodTerm(APP, "zone", ("default",)),))
    cluster.hold(app("there"), "n0")
    assert node_of(cluster, apart) == "n1"
    for number in range(2, 200):
        cluster.set_node(zoned(f"n{number}", "a"))
    assert node_of(cluster, apart) == "n1"
    cluster.hold(app("too"), "n1")
    assert isinstance(decide(cluster, apart, POLICY), Unschedulable)
    cluster.release("there")
    assert node_of(cluster, apart) != "n1"


def test_an_index_that_is_used_again_is_a_new_node() -> None:
    cluster = cluster_of(zoned("n0", "a"), zoned("n1", "b"))
    in_a = PodRequest("x", "default", "x", {"pods": 1}, node_selector=(("zone", "a"),))
    assert node_of(cluster, in_a) == "n0"
    cluster.remove_node("n0")
    assert isinstance(decide(cluster, in_a, POLICY), Unschedulable)
    cluster.set_node(zoned("n2", "c"))
    assert isinstance(decide(cluster, in_a, POLICY), Unschedulable)
    cluster.set_node(zoned("n3", "a"))
    assert node_of(cluster, in_a) == "n3"


def test_a_verdict_older_than_the_change_log_is_made_again() -> None:
    cluster = cluster_of(gpu_node("m", count=1), gpu_node("n", count=1))
    assert node_of(cluster, whole("w")) == "m"
    for _ in range(KEPT + 1):
        cluster.hold(shared("s", 15), "n")
        cluster.release("s")
    cluster.hold(PodRequest("cpu", "default", "cpu", {"cpu": 64_000, "pods": 1}), "m")
    assert node_of(cluster, whole("w")) == "n"


def test_candidates_are_only_the_listed_nodes() -> None:
    cluster = cluster_of(*(gpu_node(name, count=1) for name in "abc"))
    cluster.hold(PodRequest("cpu", "default", "cpu", {"cpu": 64_000, "pods": 1}), "a")
    found = candidates(cluster, whole("w"), POLICY, ["unknown", "c", "a", "b"])
    assert found.fitting() == ["c", "b"]
    assert (found.best(), found.scores(10)) == ("b", [0, 5, 0, 10])
    refused = found.refused(cluster, whole("w"))
    assert refused.curable == {"unknown": NOT_KNOWN, "a": "Insufficient cpu"}
    assert not refused.incurable
    decision = decide_on(cluster, whole("w"), POLICY, ["c"])
    assert isinstance(decision, Placement)
    assert decision.node == "c"
    assert isinstance(decide_on(cluster, whole("w"), POLICY, ["a"]), Unschedulable)


def test_pods_are_spread_over_zones_as_evenly_as_asked() -> None:
    cluster = cluster_of(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"))
    spread = (Spread("zone", APP, 1, required=True),)
    zones = []
    for number in range(6):
        pod = app(f"u{number}", spreads=spread)
        node = node_of(cluster, pod)
        cluster.hold(pod, node)
        zones.append(node[0])
    assert sorted(zones) == ["a"] * 3 + ["b"] * 3
    for pair in (zones[0:2], zones[2:4], zones[4:6]):
        assert sorted(pair) == ["a", "b"]


def test_a_changed_request_of_a_held_pod_counts() -> None:
    cluster = cluster_of(zoned("n0", "a"))
    apart = app("x", anti_affinity=(PodTerm(APP, "zone", ("default",)),))
    cluster.hold(app("there"), "n0")
    assert isinstance(decide(cluster, apart, POLICY), Unschedulable)
    cluster.hold(PodRequest("there", "default", "there", {"pods": 1}), "n0")  # lost its label
    assert node_of(cluster, apart) == "n0"


def test_namespaces_that_change_their_labels_are_counted_again() -> None:
    cluster = cluster_of(zoned("n0", "a"))
    team = parse_label_selector("team=x")
    apart = app("x", anti_affinity=(PodTerm(APP, "zone", (), team),))
    cluster.hold(app("there"), "n0")
    assert node_of(cluster, apart) == "n0"
    cluster.set_namespace("default", {"team": "x"})
    assert isinstance(decide(cluster, apart, POLICY), Unschedulable)
    cluster.set_namespace("default", None)
    assert node_of(cluster, apart) == "n0"


def share_of(cluster: ClusterModel, pod: PodRequest) -> Placement:
    decision = decide(cluster, pod, POLICY)
    assert isinstance(decision, Placement)
    return decision


def test_room_that_is_reserved_is_taken_for_all_others() -> None:
    cluster = cluster_of(gpu_node(count=1))
    kept = shared("kept", 10)
    cluster.reserve(kept, *share_of(cluster, kept))
    assert isinstance(decide(cluster, shared("x", 6), POLICY), Unschedulable)
    assert isinstance(decide(cluster, shared("x", 5), POLICY), Placement)
    assert cluster.unreserve("kept")
    assert not cluster.unreserve("kept")
    assert isinstance(decide(cluster, whole("x"), POLICY), Placement)


@pytest.mark.parametrize("victim", [shared("victim", 9), whole("victim")])
def test_a_reservation_counts_only_what_those_before_it_do_not_hold(victim: PodRequest) -> None:
    cluster = cluster_of(gpu_node(count=1))
    kept = shared("kept", 10)
    placement = share_of(cluster, kept)
    cluster.hold(victim, *share_of(cluster, victim))
    cluster.reserve(kept, *placement, leaving=["victim"])
    state = cluster.state("n")
    assert state is not None
    assert state.held["cpu"] == 1000
    assert not excesses_on(state)
    cluster.release("victim")
    cluster.reserve(kept, *placement)
    assert isinstance(decide(cluster, shared("x", 6), POLICY), Unschedulable)
    assert isinstance(decide(cluster, shared("x", 5), POLICY), Placement)


def test_a_reservation_is_no_excess() -> None:
    cluster = cluster_of(gpu_node(count=1))
    first, second = shared("first", 15, percent=100), shared("second", 15, percent=100)
    placement = share_of(cluster, first)
    cluster.hold(first, *placement)
    cluster.reserve(second, *placement)
    cluster.reserve(whole("third"), *placement)
    assert excesses(cluster) == []
    cluster.hold(second, *placement)
    assert [(each.held, each.there) for each in excesses(cluster)] == [(30, 15)]
