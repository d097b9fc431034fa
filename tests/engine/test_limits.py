"""What the engine keeps for speed has a limit, and decisions stay right when it is reached."""

from dataclasses import replace
from typing import Any

import pytest

from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest, PodTerm
from gpupool.engine import label_columns, pod_index, verdict_cache, verdicts
from gpupool.engine.cluster import MOST_MODELS, ClusterModel
from gpupool.engine.columns import MOST_RESOURCES
from gpupool.engine.decide import Placement, Unschedulable, decide, decide_on
from gpupool.engine.packing import Packing, card_sizes
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import Ask
from kubeclient.placement import HostPort, Taint, Toleration
from kubeclient.selectors import parse_label_selector
from tests.engine.building import POLICY, ROOMY, cluster_of, gpu_node, place, shared, whole


def plain(name: str, **labels: str) -> NodeInfo:
    return NodeInfo(name, labels=labels, allocatable=ROOMY)


def pod(uid: str, **more: Any) -> PodRequest:
    return PodRequest(uid, "default", uid, {"pods": 1}, **more)


def node_of(cluster: ClusterModel, request: PodRequest) -> str:
    decision = decide(cluster, request, POLICY)
    assert isinstance(decision, Placement)
    return decision.node


def test_the_columns_of_the_oldest_labels_are_dropped_and_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(label_columns, "MOST_KEYS", 2)
    cluster = cluster_of(plain("a", zone="x", rack="1", row="r"), plain("b", zone="y"))
    for _ in range(2):
        for key, value, node in (("zone", "y", "b"), ("rack", "1", "a"), ("row", "r", "a")):
            assert node_of(cluster, pod("u", node_selector=((key, value),))) == node
            assert len(cluster._labels._columns) <= 2


def test_a_label_that_changes_for_ever_does_not_grow_for_ever() -> None:
    cluster = cluster_of(plain("a", build="0"), plain("b"))
    for number in range(1, 1000):
        assert node_of(cluster, pod("u", node_selector=(("build", str(number - 1)),))) == "a"
        cluster.set_node(plain("a", build=str(number)))
    assert len(cluster._labels._numbers.get("build", {})) <= 2 * cluster.columns.size


def test_the_oldest_counts_of_pods_are_dropped_and_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_index, "MOST_FINDERS", 2)
    cluster = cluster_of(plain("a", zone="x"), plain("b", zone="y"))
    for name in ("p", "q", "r"):
        cluster.hold(pod(name, labels={"app": name}), "a")
    for _ in range(2):
        for name in ("p", "q", "r"):
            term = PodTerm(parse_label_selector(f"app={name}"), "zone", ("default",))
            assert node_of(cluster, pod("u", anti_affinity=(term,))) == "b"
            assert len(cluster._index._found) <= 2


def test_terms_of_held_pods_count_on_nodes_that_come_later() -> None:
    term = PodTerm(parse_label_selector("app=a"), "zone", ("default",))
    cluster = cluster_of(plain("n0", zone="z0"))
    cluster.hold(pod("hermit", anti_affinity=(term,)), "n0")
    for number in range(1, 200):
        cluster.set_node(plain(f"n{number}", zone=f"z{number % 2}"))
    assert node_of(cluster, pod("u", labels={"app": "a"})) != "n0"
    cluster.set_node(plain("n0", zone="z1"))
    for number in range(1, 200, 2):
        cluster.remove_node(f"n{number}")
    found = decide_on(cluster, pod("u", labels={"app": "a"}), POLICY, ("n2",))
    assert isinstance(found, Placement)


def test_the_oldest_verdicts_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "_MOST_BYTES", 0)  # then the minimum: sixteen verdicts
    cluster = cluster_of(plain("a"))
    for cpu in range(1, 40):
        request = PodRequest(f"u{cpu}", "default", "p", {"cpu": cpu, "pods": 1})
        assert node_of(cluster, request) == "a"
        assert len(cluster.verdicts) <= 17


def test_verdicts_that_missed_too_many_changes_of_nodes_are_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdict_cache, "KEPT", 4)
    cluster = cluster_of(plain("a"), plain("b"))
    assert node_of(cluster, pod("u")) == "a"
    for number in range(20):
        cluster.set_node(NodeInfo("a", labels={"n": str(number)}, allocatable=ROOMY))
    cluster.set_node(NodeInfo("a", allocatable=ROOMY, unschedulable=True))
    assert node_of(cluster, pod("u")) == "b"


def test_a_taken_port_closes_one_node_for_pods_with_gpus_too() -> None:
    port = HostPort("0.0.0.0", "TCP", 80)
    cluster = cluster_of(gpu_node("m", 2), gpu_node("n", 2))
    assert not isinstance(place(cluster, shared("a", 1, host_ports=(port,))), str)
    assert not isinstance(place(cluster, shared("b", 1, host_ports=(port,))), str)
    assert place(cluster, shared("c", 1, host_ports=(port,))) == (
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    )


@pytest.mark.parametrize("why", [{"unsupported": ("spec.x",)}, {"waits_for": "a volume"}])
def test_a_pod_that_cannot_be_placed_yet_is_placed_on_no_node(why: dict[str, Any]) -> None:
    cluster = cluster_of(gpu_node())
    assert isinstance(decide(cluster, whole("u", **why), POLICY), Unschedulable)
    assert isinstance(decide_on(cluster, whole("u", **why), POLICY, ("n",)), Unschedulable)


def test_sets_of_taints_that_no_node_has_any_more_are_dropped() -> None:
    cluster = cluster_of(plain("a"), plain("b"))
    for second in range(2_000):  # an autoscaler writes the time into a taint
        taint = Taint("DeletionCandidate", str(second), "NoSchedule")
        cluster.set_node(replace(plain("a"), taints=(taint,)))
        assert node_of(cluster, pod("u")) == "b"
    assert len(cluster.taint_sets) <= 100
    cluster.set_node(plain("a"))
    cluster.set_node(replace(plain("b"), taints=(Taint("k", "", "NoExecute"),)))
    assert node_of(cluster, pod("u")) == "a"


def test_all_taints_stay_right_when_old_sets_are_dropped() -> None:
    names = [f"n{number}" for number in range(50)]
    cluster = cluster_of(*(plain(name) for name in names))
    for second in range(20):
        for name in names:
            taint = Taint("time", f"{second}-{name}", "NoSchedule")
            cluster.set_node(replace(plain(name), taints=(taint,)))
    cluster.remove_node("n7")
    for name in names:
        tolerates = Toleration("time", False, f"19-{name}", "")
        found = decide_on(cluster, pod("u", tolerations=(tolerates,)), POLICY, names)
        node = found.node if isinstance(found, Placement) else ""
        assert node == ("" if name == "n7" else name)


def test_only_so_many_models_have_a_number() -> None:
    cluster = cluster_of(gpu_node("steady", 1))
    for number in range(2 * MOST_MODELS):
        card = Card(0, "GPU", f"model {number}", 16_130)
        cluster.set_node(gpu_node("n", inventory=Inventory((card,))))
    assert len(cluster.models) == MOST_MODELS + 1
    before = cluster.columns.model.copy()
    cluster.set_node(gpu_node("steady", 2))
    assert (cluster.columns.model == before).all()


def test_a_node_with_very_many_resources_takes_little_room() -> None:
    absurd = {f"example.com/r{number}": 1 for number in range(50_000)}
    cluster = cluster_of(gpu_node("bad", allocatable=absurd), gpu_node("good", 1))
    assert len(cluster.columns.resource_rows) == MOST_RESOURCES
    assert not isinstance(place(cluster, shared("u", 1)), str)


def test_very_small_units_make_no_large_tables() -> None:
    absurd = tuple(Card(at, f"GPU-{at}", "T4", 2**20 - at, unit_mib=1) for at in range(64))
    cluster = cluster_of(gpu_node("good", 8), gpu_node("bad", inventory=Inventory(absurd)))
    sizes = card_sizes(cluster)
    assert 15 in sizes
    assert sum(sizes) + len(sizes) * max(sizes) <= 2**20
    policy = POLICIES["residue"](Mix((Demand(Ask(1, 3, 0, 1000, 1000), (), 1),), (1, 1), sizes))
    for size in (3, 2**20 - 63):
        found = decide(cluster, shared("u", size), policy)
        assert isinstance(found, Placement)


@pytest.mark.parametrize("policy", list(POLICIES))
def test_pods_that_ask_for_more_cpu_than_64_bits_hold_are_counted(policy: str) -> None:
    cluster, packing = cluster_of(gpu_node("n", 8)), Packing(policy)
    absurd = {"cpu": 1000 * (2**63 - 1), "pods": 1}
    for at in range(64):
        packing.count(cluster, shared(f"u{at}", 1, resources=absurd))


def test_a_small_cluster_keeps_no_more_verdicts_than_there_are_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdicts, "MOST_SHAPES", 64)
    cluster, packing = cluster_of(gpu_node("n", 8)), Packing("residue")
    for at in range(300):
        different = shared(f"u{at}", 1, resources={"cpu": at, "pods": 1})
        decide(cluster, different, packing.policy)
    assert len(cluster.verdicts) <= 64
