"""decide: a node that satisfies all constraints, or the reasons in the form of kube-scheduler."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.engine.policies.mix import Mix
from kubeclient.placement import (
    HostPort,
    NodeOperator,
    NodeRequirement,
    NodeTerm,
    Taint,
    Toleration,
)

ROOMY = {"cpu": 4000, "memory": 100, "pods": 10}
POLICY = POLICIES[DEFAULT](Mix())


def node(name: str = "n1", **more: Any) -> NodeInfo:
    return NodeInfo(name, **{"allocatable": ROOMY, **more})


def cluster(*nodes: NodeInfo) -> ClusterModel:
    made = ClusterModel()
    for each in nodes:
        made.set_node(each)
    return made


def pod(uid: str = "uid", **more: Any) -> PodRequest:
    return PodRequest(uid, "default", "p", **{"resources": {"cpu": 100, "pods": 1}, **more})


def where(request: PodRequest, among: ClusterModel) -> str:
    decision = decide(among, request, POLICY)
    assert isinstance(decision, Placement)
    return decision.node


def reasons(request: PodRequest, among: ClusterModel) -> str:
    decision = decide(among, request, POLICY)
    assert isinstance(decision, Unschedulable)
    return decision.message


def test_a_pod_goes_where_it_fits() -> None:
    small = node("small", allocatable={"cpu": 50, "pods": 10})
    assert where(pod(), cluster(small, node("large"))) == "large"


def test_the_reasons_are_counted_and_sorted_as_text() -> None:
    tainted = node("t", taints=(Taint("a", "b", "NoSchedule"),))
    small = [node(name, allocatable={"pods": 10}) for name in ("s1", "s2")]
    cordoned = node("c", unschedulable=True)
    assert reasons(pod(), cluster(tainted, *small, cordoned)) == (
        "0/4 nodes are available: 1 node(s) had untolerated taint {a: b}, "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_without_nodes_the_message_says_so() -> None:
    assert reasons(pod(), cluster()) == "no nodes available to schedule pods"


def test_every_lacking_resource_is_named() -> None:
    wanted = pod(resources={"cpu": 9000, "nvidia.com/gpu": 1, "pods": 1})
    found = reasons(wanted, cluster(node()))
    assert found == "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."


def test_a_full_node_has_too_many_pods() -> None:
    full = node(allocatable={"cpu": 4000, "pods": 0})
    assert reasons(pod(), cluster(full)) == "0/1 nodes are available: 1 Too many pods."


def test_a_resource_that_comes_later_is_seen() -> None:
    wanted = pod(resources={"example.com/fpga": 1, "pods": 1})
    among = cluster(node())
    assert reasons(wanted, among) == "0/1 nodes are available: 1 Insufficient example.com/fpga."
    among.set_node(node(allocatable={**ROOMY, "example.com/fpga": 1}))
    assert where(wanted, among) == "n1"


def test_does_not_exist_keeps_pods_off_nodes_with_the_label() -> None:
    term = NodeTerm((NodeRequirement("gpu", NodeOperator.DOES_NOT_EXIST, ()),))
    assert where(pod(node_terms=(term,)), cluster(node("g", labels={"gpu": "x"}), node("n"))) == "n"


def test_any_term_may_match_and_an_empty_one_never_does() -> None:
    either = (NodeTerm(), NodeTerm((NodeRequirement("a", NodeOperator.IN, ("1",)),)))
    assert where(pod(node_terms=either), cluster(node(labels={"a": "1"}))) == "n1"
    assert "affinity/selector" in reasons(pod(node_terms=(NodeTerm(),)), cluster(node()))


def test_numbers_are_compared_as_numbers() -> None:
    more_than_nine = NodeRequirement("n", NodeOperator.GREATER, ("9",))
    assert more_than_nine.matches({"n": "10"})
    assert not more_than_nine.matches({"n": "x"})
    assert not more_than_nine.matches({"n": "1_0"})  # Python reads it, Kubernetes does not
    assert not more_than_nine.matches({})


def test_a_toleration_of_every_key_tolerates_everything() -> None:
    tainted = cluster(node(taints=(Taint("a", "b", "NoExecute"),)))
    everything = (Toleration("", True, "", ""),)
    assert where(pod(tolerations=everything), tainted) == "n1"
    other_effect = (Toleration("a", True, "", "NoSchedule"),)
    assert "untolerated" in reasons(pod(tolerations=other_effect), tainted)


def test_host_ports_collide_on_the_same_address_or_on_every_one() -> None:
    busy = cluster(node())
    busy.hold(pod("there", host_ports=(HostPort("127.0.0.1", "TCP", 80),)), "n1")
    assert "free ports" in reasons(pod(host_ports=(HostPort("0.0.0.0", "TCP", 80),)), busy)
    assert where(pod(host_ports=(HostPort("127.0.0.2", "TCP", 80),)), busy) == "n1"


def test_a_pod_with_unsupported_constraints_is_not_placed() -> None:
    message = reasons(pod(unsupported=("spec.resourceClaims",)), cluster(node()))
    assert "spec.resourceClaims" in message


def test_pods_that_ask_for_nothing_are_spread() -> None:
    among = cluster(node("n1"), node("n2"))
    placed = []
    for number in range(4):
        request = pod(f"u{number}", resources={"pods": 1})
        placed.append(where(request, among))
        among.hold(request, placed[-1])
    assert sorted(placed) == ["n1", "n1", "n2", "n2"]


def test_preferences_win_over_room() -> None:
    liked = NodeTerm((NodeRequirement("disk", NodeOperator.IN, ("ssd",)),))
    fuller = node("ssd", labels={"disk": "ssd"}, allocatable={"cpu": 1000, "pods": 9})
    among = cluster(node("hdd"), fuller)
    among.hold(pod("other", resources={"cpu": 800, "pods": 1}), "ssd")
    assert where(pod(preferred=((1, liked),)), among) == "ssd"


def test_soft_taints_are_avoided_while_there_is_another_node() -> None:
    soft = node("soft", taints=(Taint("a", "b", "PreferNoSchedule"),))
    among = cluster(soft, node("n", allocatable={"cpu": 150, "pods": 1}))
    assert where(pod(), among) == "n"
    among.hold(pod("first"), "n")
    assert where(pod(), among) == "soft"


sizes = st.integers(0, 4)
requests = st.lists(st.fixed_dictionaries({"cpu": sizes, "gpu": sizes}), max_size=12)


@given(requests)
def test_holding_and_releasing_leaves_nothing_behind(wanted: list[dict[str, int]]) -> None:
    among = cluster(node(allocatable={"cpu": 100, "gpu": 100, "pods": 100}))
    before = among.columns.free.copy()
    held = [pod(f"u{i}", resources={**w, "pods": 1}) for i, w in enumerate(wanted)]
    for request in held:
        among.hold(request, "n1")
        among.hold(request, "n1")  # seen twice, held once
    for request in held:
        assert among.release(request.uid)
        assert not among.release(request.uid)
    assert (among.columns.free == before).all()


def test_a_pod_that_waits_for_a_claim_fits_nowhere_until_it_exists() -> None:
    message = reasons(pod(waits_for='persistentvolumeclaim "x" not found'), cluster(node()))
    assert message == '0/1 nodes are available: persistentvolumeclaim "x" not found.'
