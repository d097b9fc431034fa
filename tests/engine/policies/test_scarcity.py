"""Prices: pods keep off what others need, as soon as it becomes scarce and not before."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.packing import Packing
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.places import MOST_CARDS
from gpupool.engine.policies.policy import Ask
from gpupool.engine.policies.scarcity import (
    MOST_MACHINES,
    Gives,
    Machines,
    accepted,
    market_of,
    milli_of,
    prices_of,
    worth_of,
)
from tests.engine.building import ROOMY, cluster_of, shared, whole

_UNITS = 10


def node(name: str, model: str, count: int) -> NodeInfo:
    cards = tuple(Card(at, f"{name}-{at}", model, _UNITS, unit_mib=1) for at in range(count))
    return NodeInfo(name, labels={"model": model}, allocatable=ROOMY, inventory=Inventory(cards))


def machines(model: str, count: int, cards: int) -> list[NodeInfo]:
    return [node(f"{model.lower()}-{cards}-{at}", model, cards) for at in range(count)]


def learned(cluster: ClusterModel, *pods: PodRequest, times: int = 40) -> Packing:
    packing = Packing("residue")
    for _ in range(times):
        for pod in pods:
            packing.count(cluster, pod)
    return packing


def placed(cluster: ClusterModel, packing: Packing, pod: PodRequest) -> str:
    decision = decide(cluster, pod, packing.policy)
    assert isinstance(decision, Placement)
    cluster.hold(pod, decision.node, decision.allocation)
    return decision.node


BOUND = (("model", "A"),)


def test_pods_that_run_anywhere_avoid_models_that_others_need() -> None:
    cluster = cluster_of(*machines("A", 1, 2), *machines("B", 3, 2))
    unbound = learned(cluster, whole("x"), shared("y", 5))
    assert placed(cluster, unbound, whole("u1")) == "a-2-0"
    cluster = cluster_of(*machines("A", 1, 2), *machines("B", 3, 2))
    bound = learned(cluster, whole("x"), shared("y", 5, node_selector=BOUND))
    assert placed(cluster, bound, whole("u1")).startswith("b")


def test_a_choice_of_cards_binds_pods_to_models_too() -> None:
    cluster = cluster_of(*machines("A", 1, 2), *machines("B", 3, 2))
    choice = CardChoice(models=("A",))
    bound = learned(cluster, whole("x"), shared("y", 5, card_choice=choice))
    assert placed(cluster, bound, whole("u1")).startswith("b")


def test_a_model_that_is_asked_for_by_few_is_used_by_all() -> None:
    cluster = cluster_of(*machines("A", 20, 2), *machines("B", 20, 2))
    many = [whole(f"x{at}") for at in range(19)]
    packing = learned(cluster, *many, whole("y", node_selector=BOUND), times=20)
    assert placed(cluster, packing, whole("u1")).startswith("a")


def test_the_first_pods_leave_the_few_machines_of_a_model_to_pods_that_may_come_for_it() -> None:
    cluster = cluster_of(*machines("A", 2, 2), *machines("B", 40, 2))
    few = learned(cluster, *(whole(f"x{at}") for at in range(4)), times=10)
    assert placed(cluster, few, whole("u1")).startswith("b")
    cluster = cluster_of(*machines("A", 2, 2), *machines("B", 40, 2))
    many = learned(cluster, *(whole(f"x{at}") for at in range(4)), times=1_000)
    assert placed(cluster, many, whole("u1")).startswith("a")


def test_pods_that_were_not_seen_take_no_set_from_pods_that_were() -> None:
    classes = Machines(list(range(64)), [4] * 64, [10] * 64, [10] * 64, [Gives()] * 64)
    pairs = [(Ask(1, 0, 0, 0, 0), (at, at + 1)) for at in range(63)]
    anywhere = Demand(Ask(1, 0, 0, 0, 0), (), 100)
    seen = (anywhere, *(Demand(ask, models, 1) for ask, models in pairs))
    market = market_of(Mix(seen, (4,) * 64, (1_000,)), classes)
    assert set(market.sets) == {2**64 - 1, *(0b11 << at for at in range(63))}


def test_small_pods_leave_the_last_empty_large_machines_to_large_pods() -> None:
    cluster = cluster_of(*machines("A", 2, 8), *machines("B", 8, 2))
    # Half of the GPU is asked for by pods of eight cards, so both large machines are.
    pods = [whole(f"x{at}", node_selector=(("model", "B"),)) for at in range(8)]
    packing = learned(cluster, *pods, whole("eight", 8), times=20)
    assert {placed(cluster, packing, whole(f"u{at}")) for at in range(16)} == {
        f"b-2-{at}" for at in range(8)
    }
    assert placed(cluster, packing, whole("big", 8)).startswith("a")


def test_a_large_machine_costs_no_more_than_others_while_many_are_empty() -> None:
    cluster = cluster_of(*machines("A", 40, 8), *machines("B", 4, 2))
    bound = [whole(f"x{at}", node_selector=(("model", "B"),)) for at in range(8)]
    packing = learned(cluster, *bound, whole("eight", 8), whole("free"), times=20)
    # The eight cards of model B are all asked for; of 40 large machines, about 18 are.
    assert placed(cluster, packing, whole("u1")).startswith("a")


def test_a_pod_without_enough_cpu_on_a_machine_is_not_counted_for_it() -> None:
    classes = Machines([0, 0, 1], [8, 8, 2], [96, 128, 64], [10, 10, 10], [Gives()] * 3)
    assert accepted(Ask(8, 0, 0, 120, 1), (), classes) == 0b010
    assert accepted(Ask(1, 0, 0, 1, 1), (1,), classes) == 0b100
    assert accepted(Ask(1, 0, 0, 1, 11), (), classes) == 0


CLASSES = Machines([0, 1, 1], [8, 8, 2], [96, 128, 64], [10, 10, 10], [Gives()] * 3)
ONE_MODEL = Machines([0], [8], [130], [12], [Gives()] * 1)  # every ask fits there
asks = st.builds(
    Ask,
    st.integers(1, 8),
    st.sampled_from([0, 0, 3]),
    st.just(0),
    st.integers(1, 130),
    st.integers(1, 12),
)
demands = st.builds(Demand, asks, st.sampled_from([(), (0,), (1,)]), st.integers(1, 50))


@given(
    wanted=st.lists(demands, min_size=1, max_size=8),
    classes=st.sampled_from([CLASSES, ONE_MODEL]),
    data=st.data(),
    ask=asks,
)
@settings(deadline=None, max_examples=100)
def test_prices_are_bounded_whole_numbers_that_fall_as_more_is_free(
    wanted: list[Demand], classes: Machines, data: st.DataObject, ask: Ask
) -> None:
    market = market_of(Mix(tuple(wanted), (80, 160), (10,)), classes)
    nodes = data.draw(st.tuples(*(st.integers(0, 20) for _ in classes.cards)))
    running = np.zeros_like(market.wanted)
    many, few = (
        prices_of(
            market,
            running,
            np.array(
                [
                    [count * cards * 1000.0, *(count * (cards // s) for s in market.sizes[1:])]
                    for count, cards in zip(counts, classes.cards, strict=True)
                ]
            ),
        )
        for counts in (tuple(count + 5 for count in nodes), nodes)
    )
    cheap, dear = (p.table(ask.cards, milli_of(ask, 10)).values for p in (many, few))
    assert cheap.dtype.kind == "i"
    assert len(cheap) == 1 + MOST_MACHINES * (MOST_CARDS + 1) * 2
    assert cheap[0] == dear[0] == 0
    assert (abs(dear) < 2**50).all()
    single_cheap, single_dear = (p.table(1, 1000).values[1::2] for p in (many, few))
    assert (single_cheap >= 0).all()
    if all(demand.ask.cards == 1 for demand in wanted) and len(market.sets) == 1:
        assert (single_cheap <= single_dear).all()


def test_overload_makes_all_cards_nearly_as_dear_as_those_that_bound_pods_need() -> None:
    anywhere, bound = (Demand(Ask(1, 0, 0, 0, 0), models, 1_000) for models in ((), (0,)))
    machines = Machines([0, 1], [4, 4], [1, 1], [1, 1], [Gives()] * 2)
    market = market_of(Mix((anywhere, bound), (1_000, 1_000), (1_000,)), machines)
    # Pods that are bound to the first class hold less than they will want, the others more.
    held = {0b01: 0.8, 0b11: 1.1}  # by the machines that pods are bound to
    running = np.array([[held.get(bits, 0.0)] for bits in market.sets]) * market.wanted
    free = np.array([[50_000.0], [30_000.0]])
    calm, full = (prices_of(market, running, free, load).table(1, 1000) for load in (1.0, 1.2))
    # The place of one untouched card of each class.
    first, second = (1 + (machine * (MOST_CARDS + 1) + 1) * 2 + 1 for machine in (0, 1))
    assert calm.values[second] < calm.values[first] // 2
    assert full.values[second] > full.values[first] * 9 // 10


def test_the_set_of_all_machines_does_not_hide_that_a_smaller_one_may_be_short() -> None:
    anywhere, bound = (Demand(Ask(1, 0, 0, 0, 0), models, 20) for models in ((), (0,)))
    machines = Machines([0, 1], [4, 4], [1, 1], [1, 1], [Gives()] * 2)
    market = market_of(Mix((anywhere, bound), (1_100, 900), (1_000,)), machines)
    # After a few pods, the machines that bound pods need are short as likely as all are.
    free = np.array([[1_000_000.0], [900_000.0]])
    values = prices_of(market, np.zeros_like(market.wanted), free).table(1, 1000).values
    first, second = (1 + (machine * (MOST_CARDS + 1) + 1) * 2 + 1 for machine in (0, 1))
    assert values[first] > values[second] * 5 // 4


def test_a_place_for_eight_is_worth_more_than_two_places_for_four() -> None:
    worth = worth_of(np.ones((1, 3)), (1, 4, 8), [8])[0]
    assert worth[8] * 3 == 2 * worth[4] * 4
    # So a small pod breaks the place for four, whatever else is short.
    assert worth[4] - worth[3] < worth[8] - worth[7]
    assert worth[1] - worth[0] < worth[4] - worth[3]
