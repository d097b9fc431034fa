"""What `gpupool explain` advises for a pod that gets no GPUs."""

from dataclasses import replace

import pytest

from gpupool.core.gpu import CardHealth, GpuMode, Inventory
from gpupool.core.pods import PodRequest, PodTerm
from gpupool.scheduler.next_step import next_step
from kubeclient.placement import NodeOperator, NodeRequirement, NodeTerm
from kubeclient.selectors import LabelSelector, Operator, Requirement
from tests.engine.building import cards, cluster_of, gpu_node, gpu_pod, place, shared, whole


def test_who_waits_for_cards_that_pods_hold_is_told_how_to_get_one() -> None:
    cluster = cluster_of(gpu_node(count=1))
    place(cluster, whole("a"))
    words = (
        "Wait until a pod ends, delete one that holds a card (gpupool gpu pods lists them), "
        "or add a node."
    )
    assert next_step(cluster, whole("b")) == words
    assert next_step(cluster, shared("b", 3)) == words


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (whole("a", 3), "Request 2 or fewer cards, or add a node with 3."),
        (shared("a", 1, cards=4), "Request 2 or fewer cards, or add a node with 4."),
        (shared("a", 16), "Request 15 or fewer units, or add a node with larger cards."),
    ],
)
def test_who_asks_for_more_than_any_node_has_is_told_how_much_that_is(
    pod: PodRequest, words: str
) -> None:
    assert next_step(cluster_of(gpu_node(count=2)), pod) == words


def test_who_asks_in_the_way_that_no_node_offers_is_told_the_other_one() -> None:
    share, card = "a share (aliyun.com/gpu-mem)", "a whole card (nvidia.com/gpu)"
    shares = cluster_of(gpu_node(gpu_mode=GpuMode.SHARED))
    assert next_step(shares, whole("a")) == (f"Request {share}, or add a node that offers {card}.")
    wholes = cluster_of(gpu_node(gpu_mode=GpuMode.WHOLE))
    assert next_step(wholes, shared("a", 1)) == (
        f"Request {card}, or add a node that offers {share}."
    )


def test_where_cards_are_broken_and_nobody_holds_one_the_list_of_cards_is_named() -> None:
    broken = replace(cards("n", 1).cards[0], health=CardHealth.LOST, reason="XID 79")
    cluster = cluster_of(gpu_node(inventory=Inventory((broken,))))
    assert next_step(cluster, whole("a")) == (
        "See why cards are out of use (gpupool gpu list), or add a node."
    )


def _wants(operator: NodeOperator, *values: str) -> PodRequest:
    needed = (
        NodeRequirement("x", NodeOperator.EXISTS, ()),
        NodeRequirement("model", operator, values),
    )
    return replace(whole("p"), node_terms=(NodeTerm(needed),))


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (_wants(NodeOperator.IN, "K80", "P100"), "model In [K80, P100] (nodes have T4 or V100)"),
        (_wants(NodeOperator.NOT_IN, "T4", "V100"), "model NotIn [T4, V100] (nodes have T4 or V10"),
        (_wants(NodeOperator.DOES_NOT_EXIST), "model DoesNotExist (nodes have T4 or V100)"),
    ],
)
def test_who_wants_by_affinity_what_no_node_has_is_told_the_label(
    pod: PodRequest, words: str
) -> None:
    nodes = (gpu_node(each, labels={"model": each, "x": ""}) for each in ("T4", "V100"))
    said = next_step(cluster_of(*nodes), pod)
    assert said.startswith(f"Change the node affinity {words}")
    assert said.endswith(", or add a node that meets it.")


def test_an_affinity_of_which_each_part_is_met_somewhere_is_not_explained() -> None:
    nodes = (gpu_node("a", labels={"model": "T4"}), gpu_node("b", labels={"x": ""}))
    assert next_step(cluster_of(*nodes), _wants(NodeOperator.IN, "T4")) == ""


def test_who_wants_to_be_near_pods_that_do_not_run_is_told_which() -> None:
    cluster = cluster_of(gpu_node(labels={"zone": "z"}))
    cache = PodTerm(
        LabelSelector((Requirement("app", Operator.IN, ("cache",)),)), "zone", ("team",)
    )
    pod = replace(whole("p"), affinity=(cache,))
    assert next_step(cluster, pod) == (
        "Start a pod with app in (cache) (namespace team), "
        "or change the pod affinity: no such pod runs."
    )
    place(cluster, replace(gpu_pod("c"), namespace="team", labels={"app": "cache"}))
    assert next_step(cluster, pod) == ""


def test_the_first_pod_of_a_group_that_wants_to_be_together_needs_no_other() -> None:
    own = PodTerm(LabelSelector((Requirement("app", Operator.IN, ("a",)),)), "zone", ("default",))
    pod = replace(whole("p"), labels={"app": "a"}, affinity=(own,))
    assert next_step(cluster_of(gpu_node()), pod) == ""


def test_who_selects_a_label_that_no_node_has_is_told_which_there_are() -> None:
    cluster = cluster_of(gpu_node("a", labels={"cgpu": "true"}), gpu_node("b", labels={"x": "y"}))
    pod = replace(shared("p", 3), node_selector=(("x", "y"), ("cgpu", "yes")))
    assert next_step(cluster, pod) == (
        'Change nodeSelector cgpu: "yes" (nodes have true), '
        "or label a node: kubectl label node NODE cgpu=yes"
    )
    pod = replace(shared("p", 3), node_selector=(("disk", "fast"),))
    assert next_step(cluster, pod) == (
        'Change nodeSelector disk: "fast" (no node has that label), '
        "or label a node: kubectl label node NODE disk=fast"
    )


def test_of_a_pod_that_lacks_no_gpus_nothing_is_advised() -> None:
    cluster = cluster_of(gpu_node())
    assert next_step(cluster, gpu_pod("a")) == ""
    assert next_step(cluster, whole("a", waits_for="a claim")) == ""
