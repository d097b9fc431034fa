"""Why a pod is pending, by node and by card."""

from dataclasses import replace

from gpupool.core.gpu import CardHealth, GpuAsk, GpuMode, Inventory
from gpupool.engine.card_words import card_summary
from gpupool.engine.decide import Placement, decide
from gpupool.engine.explain import explain
from tests.engine.building import (
    POLICY,
    cards,
    cluster_of,
    gpu_node,
    gpu_pod,
    place,
    shared,
    whole,
)


def test_each_card_has_a_line_with_what_is_missing() -> None:
    good, sick, busy, mine = cards("n", 4).cards
    sick = replace(sick, health=CardHealth.UNHEALTHY, reason="Xid 79")
    busy = replace(busy, outside_mib=9000)
    cluster = cluster_of(gpu_node(inventory=Inventory((good, sick, busy, mine))))
    place(cluster, shared("a", 14))
    place(cluster, whole("b"))
    (node,) = explain(cluster, shared("c", 7)).nodes
    assert node.reasons == ("Insufficient GPU Memory in one device",)
    assert node.cards == (
        "card 0: 1 of 15 units free, 7 wanted; default/p-a holds some of it",
        "card 1: unhealthy (Xid 79)",
        "card 2: 6 of 15 units free, 7 wanted; 9000 MiB held by processes outside Kubernetes",
        "card 3: held whole by default/p-b",
    )
    (node,) = explain(cluster, whole("d", 2)).nodes
    assert node.cards[0] == "card 0: shared by default/p-a"


def test_of_many_holders_of_a_card_the_first_few_are_named() -> None:
    """Those with the most of it first: they make the most room."""
    cluster = cluster_of(gpu_node(count=1))
    for number, units in enumerate((1, 2, 3, 4, 5)):
        place(cluster, shared(str(number), units))
    (node,) = explain(cluster, whole("w")).nodes
    assert node.cards == ("card 0: shared by default/p-4, default/p-3, default/p-2 and 2 more",)
    (node,) = explain(cluster, shared("s", 1)).nodes
    assert node.cards == (
        "card 0: 0 of 15 units free, 1 wanted; "
        "default/p-4, default/p-3, default/p-2 and 2 more hold some of it",
    )


def test_room_that_is_kept_for_a_pod_names_that_pod() -> None:
    cluster = cluster_of(gpu_node(count=1))
    coming = whole("a")
    decision = decide(cluster, coming, POLICY)
    assert isinstance(decision, Placement)
    cluster.reserve(coming, decision.node, decision.allocation)
    (node,) = explain(cluster, whole("b")).nodes
    assert node.cards == ("card 0: held whole by default/p-a (kept for it)",)


def test_a_free_card_that_is_given_out_in_another_way_would_not_do() -> None:
    """ "Insufficient nvidia.com/gpu" and "card 0: would do" of one node contradict each other."""
    sharing = cluster_of(gpu_node(count=1, gpu_mode=GpuMode.SHARED))
    (node,) = explain(sharing, whole("a")).nodes
    assert node.cards == ("card 0: offered in shares only, a whole card wanted",)
    place(sharing, shared("b", 3))
    (node,) = explain(sharing, whole("a")).nodes
    assert node.cards == ("card 0: offered in shares only, a whole card wanted",)
    undivided = cluster_of(gpu_node(count=1, gpu_mode=GpuMode.WHOLE))
    (node,) = explain(undivided, shared("a", 3)).nodes
    assert node.cards == ("card 0: offered whole only, a share wanted",)


def test_nodes_that_fit_have_no_reasons() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n", unschedulable=True))
    found = explain(cluster, shared("a", 1))
    assert [(each.node, each.reasons) for each in found.nodes] == [
        ("m", ()),
        ("n", ("node(s) were unschedulable",)),
    ]
    assert found.message == "1/2 nodes are available."


def test_the_card_summary_says_how_much_is_missing() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"), gpu_node("closed", unschedulable=True))
    for number in range(2):
        place(cluster, shared(f"a{number}", 10))
    place(cluster, whole("b"))
    assert card_summary(cluster, whole("c", 2)) == ("GPUs: 1 of 4 free, at most 1 on one node.")
    assert card_summary(cluster, whole("d", 99)) == ("GPUs: no node has more than 2, 99 wanted.")
    place(cluster, shared("d", 9))
    assert card_summary(cluster, shared("e", 7)) == (
        "GPUs: none of 4 has 7 units free, the best has 6."
    )
    assert card_summary(cluster, shared("f", 5, cards=3, percent=10)) == (
        "GPUs: no node has more than 2, 3 wanted."
    )
    large = cluster_of(gpu_node("l", 3))
    place(large, whole("g"))
    assert card_summary(large, shared("h", 5, cards=3, percent=10)) == (
        "GPUs: 2 of 3 with 5 units and 10 % of compute free, at most 2 on one node."
    )
    for unconcerned in (gpu_pod("g"), shared("h", 1), whole("i", waits_for="something")):
        assert card_summary(cluster, unconcerned) == ""


def test_the_card_summary_counts_the_cards_of_all_containers() -> None:
    cluster = cluster_of(gpu_node("n", 4))
    pair = gpu_pod("a", GpuAsk("x", whole=2), GpuAsk("y", whole=3))
    assert card_summary(cluster, pair) == "GPUs: no node has more than 4, 5 wanted."
    in_turn = gpu_pod("b", GpuAsk("x", whole=5, is_init=True), GpuAsk("y", whole=3))
    assert card_summary(cluster, in_turn) == "GPUs: no node has more than 4, 5 wanted."


def test_the_card_summary_says_that_all_cards_are_given_out_in_another_way() -> None:
    shares = cluster_of(
        gpu_node("m", gpu_mode=GpuMode.SHARED), gpu_node("n", gpu_mode=GpuMode.SHARED)
    )
    assert card_summary(shares, whole("a")) == (
        "GPUs: all 4 cards are offered in shares (aliyun.com/gpu-mem), not whole."
    )
    wholes = cluster_of(gpu_node("m", 1, gpu_mode=GpuMode.WHOLE))
    assert card_summary(wholes, shared("b", 1)) == (
        "GPUs: the only card is offered whole (nvidia.com/gpu), not in shares."
    )


def test_a_card_says_that_its_compute_is_taken_or_its_memory_too_small() -> None:
    tiny = cards("tiny", 1, mib=512).cards[0]
    cluster = cluster_of(
        gpu_node(inventory=Inventory((replace(tiny, index=1), *cards("n", 1).cards)))
    )
    place(cluster, shared("a", 1, percent=80))
    (node,) = explain(cluster, shared("b", 1, percent=30)).nodes
    assert sorted(node.cards) == [
        "card 0: 20 % of compute free, 30 % wanted; default/p-a holds some of it",
        "card 1: has less than one unit of memory",
    ]


def test_of_a_pod_that_waits_for_something_else_no_node_is_explained() -> None:
    cluster = cluster_of(gpu_node())
    found = explain(cluster, shared("a", 1, waits_for="claim data is not there"))
    assert len(found.nodes) == 0
    assert "claim data is not there" in found.message


def test_of_two_nodes_only_the_one_whose_cards_do_not_suffice_together_is_refused() -> None:
    pair = gpu_pod("a", GpuAsk("x", units=10), GpuAsk("y", units=10))
    cluster = cluster_of(gpu_node("one", 1), gpu_node("two", 2))
    found = {node.node: bool(node.reasons) for node in explain(cluster, pair).nodes}
    assert found == {"one": True, "two": False}
