"""what_if: the answers are those of the engine, and what it promises comes true."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.cli.whatif_view import page_of
from gpupool.contract.inventory import inventory_text
from gpupool.core.gpu import Card, CardHealth, Inventory
from gpupool.engine.decide import Placement, decide
from gpupool.engine.discrepancies import excesses_on
from gpupool.engine.growth import named
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.follow import state_of
from gpupool.scheduler.groups import Group
from gpupool.scheduler.pending import request_with_volumes
from gpupool.scheduler.what_if import (
    MOST_FURTHER_COPIES,
    Addition,
    Answer,
    Question,
    UnknownPool,
    Workload,
    further_node,
    node_kinds,
    what_if,
)
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

SCHEDULER = "gpupool-scheduler"


def node(name: str, cards: int, pool: str = "", **card: Any) -> Obj:
    listed = tuple(Card(at, f"{name}-{at}", "V100", 16384, **card) for at in range(cards))
    offered = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(cards)}
    return {
        "metadata": {
            "name": name,
            "labels": {"node.gpupool.io/pool": pool} if pool else {},
            "annotations": {"gpupool.io/inventory": inventory_text(Inventory(listed))},
        },
        "status": {"allocatable": offered},
    }


def pod(name: str, cards: int, priority: int = 0, **labels: str) -> Obj:
    asked = {"nvidia.com/gpu": str(cards)}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": name,
            "labels": labels,
            "creationTimestamp": f"2026-11-17T00:00:00Z/{name}",
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "priority": priority,
            "containers": [{"name": "c", "resources": {"limits": asked, "requests": asked}}],
        },
    }


def cluster(nodes: list[Obj], waiting: list[Obj] | None = None) -> ClusterState:
    return state_of({NODES: nodes, PODS: waiting or []}, "best-fit", {SCHEDULER})


def further(answer: Answer) -> dict[str, int]:
    return {each.pool: each.nodes for each in answer.additions}


def held(state: ClusterState, name: str, cards: int) -> None:
    """A pod that has a node."""
    request = request_with_volumes(pod(name, cards), state.storage)
    found = decide(state.cluster, request, state.policy)
    assert isinstance(found, Placement)
    state.cluster.hold(request, found.node, found.allocation)


def workload(cards: int, copies: int, priority: int = 0, group: Group | None = None) -> Workload:
    asked = pod("new", cards, priority)
    request = request_with_volumes(asked, cluster([]).storage)
    return Workload("Deployment", "team", "new", request, copies, group)


def test_a_single_pod_keeps_its_name_and_copies_have_numbers() -> None:
    request = request_with_volumes(pod("eight", 8), cluster([]).storage)
    single = Workload("Pod", "team", "eight", request, 1)
    assert [each.name for each in single.pods] == ["eight"]
    assert single.copy(1).name == "eight-1"
    several = Workload("Pod", "team", "eight", request, 2)
    assert [each.name for each in several.pods] == ["eight-0", "eight-1"]


def test_copies_are_placed_until_the_next_one_does_not_fit_and_it_is_said_why() -> None:
    answer = what_if(cluster([node("a", 8)]), Question([workload(3, 4)]))
    (fate,) = answer.fates
    assert [each.node for each in fate.placed] == ["a", "a"]
    assert "Insufficient nvidia.com/gpu" in fate.why
    assert not answer.all_fit


def test_where_all_fit_it_is_counted_how_many_more_would() -> None:
    (fate,) = what_if(cluster([node("a", 8)]), Question([workload(2, 1)])).fates
    assert (len(fate.placed), fate.more) == (1, 3)
    assert "Insufficient nvidia.com/gpu" in fate.why


def test_not_more_are_counted_than_anybody_wants_to_know() -> None:
    many = [node(f"n{number}", 8, "big") for number in range(MOST_FURTHER_COPIES // 8 + 1)]
    answer = what_if(cluster(many), Question([workload(1, 1)]))
    assert answer.fates[0].more == MOST_FURTHER_COPIES
    said = [line.text.strip() for line in page_of(answer).text]
    assert "at least 1000 more copies would fit, too" in said


def test_pods_that_wait_come_before_new_ones_of_the_same_priority() -> None:
    question = Question([workload(8, 1)], more={"big": 1})
    answer = what_if(cluster([node("a", 8, "big")], [pod("old", 8), pod("older", 8)]), question)
    assert [pod.node for pod in answer.waiting] == ["a", "new/big/0"]
    assert not answer.fates[0].placed
    assert answer.displaced == ()


def test_new_pods_of_a_higher_priority_are_said_to_keep_others_waiting() -> None:
    question = Question([workload(8, 1, priority=10)])
    answer = what_if(cluster([node("a", 8)], [pod("old", 8)]), question)
    assert answer.all_fit
    assert answer.displaced == ("team/old",)


def test_a_node_that_goes_sends_its_pods_elsewhere_and_loses_those_without_a_controller() -> None:
    state = cluster([node("a", 4), node("b", 4)])
    for name in ("kept", "lost", "daemon"):
        held(state, name, 1)
    (on,) = {each.node for each in state.cluster.holds()}
    other = "b" if on == "a" else "a"
    question = Question(
        without={on}, bound_to_node=frozenset({"daemon"}), alone=frozenset({"lost"})
    )
    fates = {pod.name: pod for pod in what_if(state, question).moved}
    assert set(fates) == {"kept", "lost"}
    assert (fates["kept"].node, fates["kept"].was_on) == (other, on)
    assert fates["lost"].is_lost
    assert not fates["lost"].node


def test_a_group_fits_as_a_whole_or_not_at_all() -> None:
    group = Group("team", "gang", 3)
    answer = what_if(cluster([node("a", 8)]), Question([workload(4, 3, group=group)]))
    assert not answer.fates[0].placed
    assert "2 of 3 pods of its group fit" in answer.fates[0].why
    both = cluster([node("a", 8), node("b", 8)])
    assert what_if(both, Question([workload(4, 3, group=group)])).all_fit


def test_the_cheapest_pool_is_named_and_makes_all_fit() -> None:
    nodes = [node("a", 2, "small"), node("b", 4, "middle"), node("c", 8, "large")]
    answer = what_if(cluster(nodes), Question([workload(4, 5)]))
    # Three fit now. Two of four cards cost as much as one of eight; the smaller sum wins.
    assert answer.additions in ((Addition("middle", 2),), (Addition("large", 1),))
    again = Question([workload(4, 5)], more=further(answer))
    assert what_if(cluster(nodes), again).all_fit


def test_workloads_that_no_pool_takes_together_get_nodes_of_several_pools() -> None:
    nodes = [node("a", 1, "left"), node("b", 1, "right")]

    def bound_to(pool: str) -> Workload:
        wanted = workload(1, 2)
        selector = (("node.gpupool.io/pool", pool),)
        request = replace(wanted.request, node_selector=selector)
        return replace(wanted, name=pool, request=request)

    question = Question([bound_to("left"), bound_to("right")])
    answer = what_if(cluster(nodes), question)
    assert answer.additions == (Addition("left", 1), Addition("right", 1))
    assert what_if(cluster(nodes), replace(question, more=further(answer))).all_fit


def test_what_no_pool_can_take_needs_no_node() -> None:
    answer = what_if(cluster([node("a", 8, "big")]), Question([workload(9, 1)]))
    assert not answer.additions
    assert not answer.all_fit


def test_a_further_node_is_as_good_as_new() -> None:
    sick = node("a", 8, "big", health=CardHealth.LOST, reason="XID 79")
    answer = what_if(cluster([sick]), Question([workload(8, 1)], more={"big": 1}))
    (placed,) = answer.fates[0].placed
    assert further_node(placed.node) == ("big", 0)


def test_a_pool_without_nodes_is_refused_by_name() -> None:
    with pytest.raises(UnknownPool, match="none"):
        what_if(cluster([node("a", 8, "big")]), Question(more={"none": 1}))


SIZES = st.integers(1, 8)


@given(
    st.lists(SIZES, min_size=1, max_size=4),
    st.lists(st.tuples(SIZES, st.integers(0, 2)), max_size=6),
    SIZES,
    st.integers(1, 5),
    st.integers(0, 2),
)
def test_no_card_is_promised_twice_and_the_addition_keeps_its_word(
    sizes: list[int], waiting: list[tuple[int, int]], cards: int, copies: int, priority: int
) -> None:
    nodes = [node(f"n{at}", size, f"pool{size}") for at, size in enumerate(sizes)]
    pods = [pod(f"w{at}", asked, rank) for at, (asked, rank) in enumerate(waiting)]
    asked = workload(cards, copies, priority)
    state = cluster(nodes, pods)
    answer = what_if(state, Question([asked]))
    for index in state.cluster.all_nodes():
        assert not excesses_on(state.cluster.at(int(index)))
    placed = {held.pod.uid for held in state.cluster.holds()}
    assert len(placed) == len(answer.fates[0].placed) + sum(bool(p.node) for p in answer.waiting)
    if answer.additions:
        add_nodes(state, answer)
        for left in asked.pods:
            if left.uid not in placed:
                found = decide(state.cluster, left, state.policy)
                assert isinstance(found, Placement)
                state.cluster.hold(left, found.node, found.allocation)


def add_nodes(state: ClusterState, answer: Answer) -> None:
    """What fits now is placed by the time they come, and holds its cards."""
    kinds = node_kinds(state.cluster)
    for pool, count in further(answer).items():
        for number in range(count):
            state.cluster.set_node(named(kinds[pool], f"new/{pool}/{number}"))


def test_a_further_node_is_like_a_well_one_of_its_pool() -> None:
    """Whichever comes first: one without its agent, or with half of its devices, is no model."""
    bare = node("bare", 0, "big")
    del bare["metadata"]["annotations"]
    ill = node("ill", 4, "big", health=CardHealth.UNHEALTHY)
    ill["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    going = node("going", 4, "big")
    going["spec"] = {
        "unschedulable": True,
        "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
    }
    for first in (bare, ill, going):
        state = cluster([first, node("well", 4, "big")])
        held(state, "all", 4)
        answer = what_if(state, Question([workload(4, 2)]))
        assert further(answer) == {"big": 2}, first["metadata"]["name"]


def test_a_node_that_is_drained_is_a_model_of_a_further_one_where_there_is_no_other() -> None:
    for key in (
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/disk-pressure",
        "ToBeDeletedByClusterAutoscaler",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/disrupted",
    ):
        only = node("only", 4, "big")
        only["spec"] = {"unschedulable": True, "taints": [{"key": key, "effect": "NoSchedule"}]}
        assert further(what_if(cluster([only]), Question([workload(4, 1)]))) == {"big": 1}, key
