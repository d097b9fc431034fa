"""decide: a node that satisfies everything, or the reasons in kube-scheduler's words."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpupool.core.request import (
    HostPort,
    Node,
    NodeOperator,
    NodeRequirement,
    NodeTerm,
    PodRequest,
    Taint,
    Toleration,
)
from gpupool.engine.decide import Placement, Unschedulable, decide, first_refusal
from gpupool.engine.usage import Usage

ROOMY = {"cpu": 4000, "memory": 100, "pods": 10}


def node(name: str = "n1", **more: Any) -> Usage:
    return Usage(Node(name, **{"allocatable": ROOMY, **more}))


def pod(**more: Any) -> PodRequest:
    return PodRequest("uid", "default", "p", **{"resources": {"cpu": 100, "pods": 1}, **more})


def reasons(request: PodRequest, *nodes: Usage) -> str:
    decision = decide(request, nodes, 0)
    assert isinstance(decision, Unschedulable)
    return decision.message


def test_a_pod_goes_where_it_fits() -> None:
    small = node("small", allocatable={"cpu": 50, "pods": 10})
    decision = decide(pod(), [small, node("large")], 0)
    assert isinstance(decision, Placement)
    assert decision.node == "large"


def test_the_reasons_are_counted_and_sorted_as_text() -> None:
    tainted = node("t", taints=(Taint("a", "b", "NoSchedule"),))
    small = [node(name, allocatable={"pods": 10}) for name in ("s1", "s2")]
    cordoned = node("c", unschedulable=True)
    assert reasons(pod(), tainted, *small, cordoned) == (
        "0/4 nodes are available: 1 node(s) had untolerated taint {a: b}, "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_without_nodes_there_is_a_sentence_of_its_own() -> None:
    assert reasons(pod()) == "no nodes available to schedule pods"


def test_every_lacking_resource_is_named() -> None:
    wanted = pod(resources={"cpu": 9000, "nvidia.com/gpu": 1, "pods": 1})
    found = reasons(wanted, node())
    assert found == "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."


def test_a_full_node_has_too_many_pods() -> None:
    full = node(allocatable={"cpu": 4000, "pods": 0})
    assert reasons(pod(), full) == "0/1 nodes are available: 1 Too many pods."


def test_does_not_exist_keeps_pods_off_nodes_with_the_label() -> None:
    term = NodeTerm((NodeRequirement("gpu", NodeOperator.DOES_NOT_EXIST, ()),))
    decision = decide(pod(node_terms=(term,)), [node("g", labels={"gpu": "x"}), node("n")], 0)
    assert isinstance(decision, Placement)
    assert decision.node == "n"


def test_any_term_may_match_and_an_empty_one_never_does() -> None:
    either = (NodeTerm(), NodeTerm((NodeRequirement("a", NodeOperator.IN, ("1",)),)))
    assert isinstance(decide(pod(node_terms=either), [node(labels={"a": "1"})], 0), Placement)
    assert "affinity/selector" in reasons(pod(node_terms=(NodeTerm(),)), node())


def test_numbers_are_compared_as_numbers() -> None:
    more_than_nine = NodeRequirement("n", NodeOperator.GREATER, ("9",))
    assert more_than_nine.matches({"n": "10"})
    assert not more_than_nine.matches({"n": "x"})
    assert not more_than_nine.matches({})


def test_a_toleration_of_every_key_tolerates_everything() -> None:
    tainted = node(taints=(Taint("a", "b", "NoExecute"),))
    everything = (Toleration("", True, "", ""),)
    assert isinstance(decide(pod(tolerations=everything), [tainted], 0), Placement)
    other_effect = (Toleration("a", True, "", "NoSchedule"),)
    assert "untolerated" in reasons(pod(tolerations=other_effect), tainted)


def test_host_ports_collide_on_the_same_address_or_on_every_one() -> None:
    busy = node()
    busy.hold(pod(host_ports=(HostPort("127.0.0.1", "TCP", 80),)))
    assert "free ports" in reasons(pod(host_ports=(HostPort("0.0.0.0", "TCP", 80),)), busy)
    other = pod(host_ports=(HostPort("127.0.0.2", "TCP", 80),))
    assert isinstance(decide(other, [busy], 0), Placement)


def test_what_is_not_supported_is_refused_rather_than_misplaced() -> None:
    message = reasons(pod(unsupported=("spec.affinity.podAffinity",)), node())
    assert "spec.affinity.podAffinity" in message


def test_pods_that_ask_for_nothing_are_spread() -> None:
    first, second = node("n1"), node("n2")
    placed = []
    for number in range(4):
        request = PodRequest(f"uid-{number}", "default", "p", resources={"pods": 1})
        decision = decide(request, [first, second], 0)
        assert isinstance(decision, Placement)
        placed.append(decision.node)
        next(each for each in (first, second) if each.node.name == decision.node).hold(request)
    assert sorted(placed) == ["n1", "n1", "n2", "n2"]


def test_preferences_win_over_room() -> None:
    liked = NodeTerm((NodeRequirement("disk", NodeOperator.IN, ("ssd",)),))
    fuller = node("ssd", labels={"disk": "ssd"}, allocatable={"cpu": 1000, "pods": 9})
    fuller.hold(PodRequest("other", "default", "o", {"cpu": 800, "pods": 1}))
    decision = decide(pod(preferred=((1, liked),)), [node("hdd"), fuller], 0)
    assert isinstance(decision, Placement)
    assert decision.node == "ssd"


sizes = st.integers(0, 4)
requests = st.lists(st.fixed_dictionaries({"cpu": sizes, "gpu": sizes}), max_size=12)


@given(requests, st.lists(st.fixed_dictionaries({"cpu": sizes, "gpu": sizes}), max_size=4))
def test_no_node_is_ever_overcommitted_and_what_fits_is_placed(
    wanted: list[dict[str, int]], offered: list[dict[str, int]]
) -> None:
    nodes = [node(f"n{i}", allocatable={**o, "pods": 3}) for i, o in enumerate(offered)]
    for number, resources in enumerate(wanted):
        request = PodRequest(f"u{number}", "default", f"p{number}", {**resources, "pods": 1})
        decision = decide(request, nodes, number % len(nodes) if nodes else 0)
        fits = [u.node.name for u in nodes if not first_refusal(request, u)]
        match decision:
            case Placement(node=name):
                assert name in fits
                next(u for u in nodes if u.node.name == name).hold(request)
            case Unschedulable():
                assert not fits
    for usage in nodes:
        for name, held in usage.held.items():
            assert held <= usage.node.allocatable.get(name, 0)


@given(requests)
def test_holding_and_releasing_leaves_nothing_behind(wanted: list[dict[str, int]]) -> None:
    usage = node(allocatable={"cpu": 100, "gpu": 100, "pods": 100})
    held = [PodRequest(f"u{i}", "default", f"p{i}", {**w, "pods": 1}) for i, w in enumerate(wanted)]
    for request in held:
        usage.hold(request)
        usage.hold(request)  # seen twice, held once
    for request in held:
        assert usage.release(request.uid)
        assert not usage.release(request.uid)
    assert not any(usage.held.values())
    assert not usage.ports
