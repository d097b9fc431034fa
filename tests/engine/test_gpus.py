"""Allocation of whole, shared, several, mixed and unhealthy cards; exact sizes of shares."""

from dataclasses import replace

import pytest

from gpupool.core.gpu import (
    Allocation,
    CardHealth,
    CardPlacement,
    CardShare,
    GpuAsk,
    GpuMode,
    Inventory,
    Isolation,
)
from gpupool.engine.decide import Placement, decide
from gpupool.engine.discrepancies import excesses, strays
from tests.engine.building import (
    POLICY,
    cards,
    cluster_of,
    gpu_node,
    gpu_pod,
    indexes,
    place,
    shared,
    whole,
)

NO_MEMORY = "0/1 nodes are available: 1 Insufficient GPU Memory in one device."
NO_CARD = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def test_a_share_is_exact_in_units_and_mib() -> None:
    given = place(cluster_of(gpu_node()), shared("u", 3, percent=20))
    assert isinstance(given, Allocation)
    (gpus,) = given.containers
    assert gpus.shares == (CardShare("n-0", 0, 3, 3226, 15, 20),)
    assert gpus.isolation is Isolation.LIMIT


def test_without_isolation_the_share_says_so() -> None:
    given = place(cluster_of(gpu_node(isolates=False)), shared("u", 3))
    assert isinstance(given, Allocation)
    assert given.containers[0].isolation is Isolation.NONE


@pytest.mark.parametrize(("granted", "isolation"), [(True, "none"), (False, "limit")])
def test_a_node_must_allow_a_request_to_run_without_isolation(
    granted: bool, isolation: str
) -> None:
    cluster = cluster_of(gpu_node(grants_unisolated=granted))
    given = place(cluster, gpu_pod("u", GpuAsk("c", units=3, unisolated=True)))
    assert isinstance(given, Allocation)
    assert given.containers[0].isolation == isolation


def test_shares_fill_one_card_before_the_next() -> None:
    cluster = cluster_of(gpu_node())
    assert [indexes(place(cluster, shared(f"u{n}", 5))) for n in range(6)] == [
        [0], [0], [0], [1], [1], [1]
    ]  # fmt: skip
    assert place(cluster, shared("more", 1)) == NO_MEMORY


def test_free_memory_on_two_cards_is_not_a_card() -> None:
    cluster = cluster_of(gpu_node())
    place(cluster, shared("a", 8))
    place(cluster, shared("b", 8))
    assert place(cluster, shared("c", 8)) == NO_MEMORY


def test_a_share_needs_free_compute_too() -> None:
    cluster = cluster_of(gpu_node(count=1))
    place(cluster, shared("a", 1, percent=60))
    assert place(cluster, shared("b", 1, percent=50)) == (
        "0/1 nodes are available: 1 Insufficient GPU compute in one device."
    )
    assert indexes(place(cluster, shared("c", 1, percent=40))) == [0]


def test_a_share_over_several_cards_takes_as_many_of_each() -> None:
    cluster = cluster_of(gpu_node(count=4))
    place(cluster, shared("a", 14))
    assert indexes(place(cluster, shared("b", 2, cards=3))) == [1, 2, 3]
    assert place(cluster, shared("c", 2, cards=4)) == (
        "0/1 nodes are available: 1 Insufficient GPU Memory in 4 devices."
    )


def test_a_card_is_never_whole_and_shared_at_once() -> None:
    cluster = cluster_of(gpu_node())
    place(cluster, shared("a", 1))
    assert indexes(place(cluster, whole("b"))) == [1]
    assert place(cluster, whole("c")) == NO_CARD
    assert indexes(place(cluster, shared("d", 14))) == [0]
    assert place(cluster, shared("e", 1)) == NO_MEMORY


def test_a_nodes_mode_says_what_it_gives_out() -> None:
    sharing = cluster_of(gpu_node(gpu_mode=GpuMode.SHARED))
    words = "0/1 nodes are available: 1 node(s) only shared their GPUs by memory."
    assert place(sharing, whole("a")) == words
    whole_only = cluster_of(gpu_node(gpu_mode=GpuMode.WHOLE))
    words = "0/1 nodes are available: 1 node(s) only gave out whole GPUs."
    assert place(whole_only, shared("a", 1)) == words


def test_the_allocatable_of_the_device_plugin_counts_too() -> None:
    node = gpu_node(allocatable={"cpu": 9000, "pods": 9, "nvidia.com/gpu": 1})
    asked = {"cpu": 1000, "pods": 1, "nvidia.com/gpu": 1}
    cluster = cluster_of(node)
    assert indexes(place(cluster, whole("a", resources=asked))) == [0]
    assert place(cluster, whole("b", resources=asked)) == NO_CARD


def test_a_node_without_inventory_has_no_cards() -> None:
    cluster = cluster_of(gpu_node(inventory=None))
    words = "0/1 nodes are available: 1 node(s) had no GPU inventory."
    assert place(cluster, whole("a")) == words


def test_only_healthy_cards_take_pods() -> None:
    for health in CardHealth:
        cluster = cluster_of(gpu_node(inventory=cards("n", 1, health=health)))
        fits = health is CardHealth.HEALTHY
        assert isinstance(place(cluster, shared("a", 1)), Allocation) is fits


def test_memory_that_others_use_is_not_given_out() -> None:
    cluster = cluster_of(gpu_node(inventory=cards("n", 1, outside_mib=2000)))
    assert place(cluster, shared("a", 14)) == NO_MEMORY
    assert place(cluster, whole("b")) == NO_CARD
    assert indexes(place(cluster, shared("c", 13))) == [0]


def test_a_whole_card_may_have_little_memory_in_use_by_others() -> None:
    cluster = cluster_of(gpu_node(inventory=cards("n", 1, outside_mib=40)))
    assert indexes(place(cluster, whole("a"))) == [0]


def test_cards_of_different_sizes_have_their_own_units() -> None:
    small, large = cards("s", 1, mib=15079).cards[0], cards("l", 1, mib=32510).cards[0]
    node = gpu_node(inventory=Inventory((small, replace(large, index=1))))
    cluster = cluster_of(node)
    given = place(cluster, shared("a", 20))
    assert isinstance(given, Allocation)
    assert given.containers[0].shares == (CardShare("l-0", 1, 20, 20974, 31),)


def test_containers_have_cards_of_their_own_and_all_must_fit() -> None:
    cluster = cluster_of(gpu_node(count=3))
    pod = gpu_pod("a", GpuAsk("x", units=10), GpuAsk("y", whole=1), GpuAsk("z", units=10))
    given = place(cluster, pod)
    assert isinstance(given, Allocation)
    assert [gpus.container for gpus in given.containers] == ["x", "y", "z"]
    assert sorted(indexes(given)) == [0, 1, 2]
    cluster = cluster_of(gpu_node(count=2))
    words = "0/1 nodes are available: 1 Insufficient GPUs for all containers at once."
    assert place(cluster, pod) == words


def test_the_search_backtracks_to_keep_a_whole_card_free() -> None:
    cluster = cluster_of(gpu_node(count=2, card_placement=CardPlacement.SPREAD))
    place(cluster, shared("there", 1))
    pod = gpu_pod("a", GpuAsk("x", units=3), GpuAsk("y", whole=1))  # card 1 is the better fit for x
    assert indexes(place(cluster, pod)) == [0, 1]


def test_an_init_container_uses_the_cards_of_those_that_follow() -> None:
    cluster = cluster_of(gpu_node(count=2))
    pod = gpu_pod("a", GpuAsk("init", units=12, is_init=True), GpuAsk("main", units=9))
    assert indexes(place(cluster, pod)) == [0, 0]
    assert indexes(place(cluster, shared("b", 3))) == [0]
    assert indexes(place(cluster, shared("c", 1))) == [1]


def test_linked_cards_are_given_together_and_the_rest_stays_linked() -> None:
    pairs = {0: 3, 3: 0, 1: 2, 2: 1}  # 0-3 and 1-2 are linked
    plain = cards("n", 4).cards
    linked = tuple(replace(card, links=((pairs[card.index], 2),)) for card in plain)
    cluster = cluster_of(gpu_node(inventory=Inventory(linked)))
    assert indexes(place(cluster, whole("a", 2))) == [0, 3]
    assert indexes(place(cluster, whole("b", 2))) == [1, 2]
    cluster = cluster_of(gpu_node(inventory=Inventory(linked)))
    place(cluster, whole("a"))
    assert indexes(place(cluster, whole("b"))) == [3]  # no linked pair is split for it


def test_placement_of_the_node_and_of_the_pod() -> None:
    spreading = gpu_node(card_placement=CardPlacement.SPREAD)
    cluster = cluster_of(spreading)
    assert [indexes(place(cluster, shared(f"u{n}", 2))) for n in range(2)] == [[0], [1]]
    packed = [
        indexes(place(cluster, shared(f"b{n}", 2, card_placement=CardPlacement.BINPACK)))
        for n in range(2)
    ]
    assert packed == [[0], [0]]
    nodes = cluster_of(gpu_node("m"), gpu_node("n"))
    apart = [shared(f"u{n}", 2, card_placement=CardPlacement.SPREAD) for n in range(4)]
    used = [nodes_card(place(nodes, pod)) for pod in apart]
    assert sorted(used) == ["m-0", "m-1", "n-0", "n-1"]


def nodes_card(given: Allocation | str) -> str:
    assert isinstance(given, Allocation), given
    return given.containers[0].shares[0].uuid


def test_groups_share_a_card_or_never_do() -> None:
    cluster = cluster_of(gpu_node("m"), gpu_node("n"))
    assert nodes_card(place(cluster, shared("a", 5, same_card="g"))) == "m-0"
    place(cluster, shared("other", 5))
    assert nodes_card(place(cluster, shared("b", 5, same_card="g"))) == "m-0"
    words = "0/2 nodes are available: 2 node(s) had no GPU that the pod's card group may use."
    assert place(cluster, shared("c", 5, same_card="g")) == words  # that card is full
    found = [nodes_card(place(cluster, shared(f"d{n}", 1, different_card="g"))) for n in range(3)]
    assert sorted(found) == ["m-1", "n-0", "n-1"]
    assert place(cluster, shared("d3", 1, different_card="g")) == words


def test_a_node_with_many_cards_and_many_nodes() -> None:
    cluster = cluster_of(*(gpu_node(f"n{at:03}", count=1) for at in range(70)))
    cluster.set_node(gpu_node("big", count=16))
    assert len(indexes(place(cluster, whole("a", 16)))) == 16
    assert place(cluster, whole("b", 16)) == (
        "0/71 nodes are available: 71 Insufficient nvidia.com/gpu."
    )


def test_holds_survive_a_node_that_goes_and_comes_back() -> None:
    cluster = cluster_of(gpu_node(count=1))
    pod = shared("a", 10)
    place(cluster, pod)
    cluster.remove_node("n")
    assert [stray.what for stray in strays(cluster)] == ["the node is not there"]
    cluster.set_node(gpu_node(count=1))
    assert not strays(cluster)
    assert place(cluster, shared("b", 6)) == NO_MEMORY
    cluster.set_node(gpu_node(inventory=cards("other", 1)))
    assert [stray.what for stray in strays(cluster)] == ["card n-0 is not there"]
    assert indexes(place(cluster, shared("b", 15))) == [0]
    assert cluster.release("a")


def test_pods_that_others_bind_are_counted_and_reported() -> None:
    cluster = cluster_of(gpu_node(count=1))
    decision = decide(cluster, shared("a", 10), POLICY)
    assert isinstance(decision, Placement)
    for uid in ("a", "b"):
        cluster.hold(shared(uid, 10), "n", decision.allocation)
    (excess,) = excesses(cluster)
    assert (excess.what, excess.held, excess.there) == ("n-0", 20, 15)
    assert int(cluster.columns.card_free.min()) == 0
    cluster.release("a")
    assert not excesses(cluster)


def test_more_compute_than_a_card_has_is_found() -> None:
    cluster = cluster_of(gpu_node(count=1))
    given = place(cluster, shared("a", 1, percent=80))
    assert isinstance(given, Allocation)
    cluster.hold(shared("b", 1, percent=80), "n", given)  # by another scheduler
    (over,) = excesses(cluster)
    assert (over.what, over.held, over.there) == ("n-0", 160, 100)


def test_an_init_container_with_more_cards_than_there_are_is_refused() -> None:
    cluster = cluster_of(gpu_node(count=2))
    pod = gpu_pod("u", GpuAsk("setup", units=12, cards=2, is_init=True), GpuAsk("main", units=4))
    assert indexes(place(cluster, pod))
    place(cluster, shared("v", 8))
    again = gpu_pod("w", GpuAsk("setup", units=12, cards=2, is_init=True), GpuAsk("main", units=1))
    assert isinstance(place(cluster, again), str)
