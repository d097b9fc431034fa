from math import exp

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.kernel import LIBRARY, rises_by, view_of
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.fgd import STEPS, rises_of, steps_of, typical_pods
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import Ask
from tests.engine.policies.clusters import UNITS, asks, clusters, fits, mixes, nodes_of, request


def frequent(mix: Mix) -> list[Demand]:
    merged: dict[tuple[object, ...], Demand] = {}
    for demand in mix.demands:
        ask = demand.ask
        kind = (ask.cards, ask.memory, ask.compute, ask.cpu_milli, demand.models)
        known = merged.get(kind, Demand(ask, demand.models, 0))
        merged[kind] = Demand(ask, demand.models, known.pods + demand.pods)
    chosen: list[Demand] = []
    for demand in sorted(merged.values(), key=lambda demand: -demand.pods):
        if sum(d.pods for d in chosen) >= 0.95 * sum(d.pods for d in mix.demands):
            break
        chosen.append(demand)
    return chosen


def fragments(cards: list[int], cpu: int, model: int, demands: list[Demand]) -> int:
    """What each kind of pod could not use, times how many of them there are."""
    total = 0
    for demand in demands:
        ask = demand.ask
        size = -(-ask.memory * 1000 // UNITS) if ask.memory else 1000
        served = cpu >= ask.cpu_milli and (not demand.models or model in demand.models)
        if served and sum(card >= size for card in cards) >= ask.cards:
            total += demand.pods * sum(card for card in cards if card < size)
        else:
            total += demand.pods * sum(cards)
    return total


def naive_cost(cluster: ClusterModel, ask: Ask, node: int, mix: Mix) -> int:
    columns, demands = cluster.columns, frequent(mix)
    count = len(cluster.at(node).cards)
    cards = [int(columns.card_free[card, node]) * 1000 // UNITS for card in range(count)]
    cpu, model = int(columns.cpu_free[node]), int(columns.model[node])
    before = fragments(cards, cpu, model, demands)
    costs = []
    if ask.memory:
        taken = -(-ask.memory * 1000 // UNITS)
        for at, card in enumerate(cards):
            if card >= taken:
                after = [*cards[:at], card - taken, *cards[at + 1 :]]
                costs.append(fragments(after, cpu - ask.cpu_milli, model, demands))
    else:
        after = sorted(cards, key=lambda card: card != 1000)
        costs.append(fragments(after[ask.cards :], cpu - ask.cpu_milli, model, demands))
    pods = sum(demand.pods for demand in demands)
    return min(-int(100 / (1 + exp((cost - before) / (pods * 1000)))) for cost in costs)


single_asks = asks.filter(lambda ask: not ask.compute and (not ask.memory or ask.cards == 1))


@given(cluster=clusters(), mix=mixes(), pods=st.lists(single_asks, max_size=8))
@settings(deadline=None, max_examples=60)
def test_costs_are_those_of_the_published_method(
    cluster: ClusterModel, mix: Mix, pods: list[Ask]
) -> None:
    policy = POLICIES["fgd"](mix)
    for at, ask in enumerate(pods):
        for node in nodes_of(cluster):
            if fits(cluster, ask, int(node)):
                cost = policy.costs(cluster.columns, ask, nodes_of(cluster)[node : node + 1])
                assert cost.tolist() == [naive_cost(cluster, ask, int(node), mix)]
        decision = decide(cluster, request(ask, str(at)), policy)
        if isinstance(decision, Placement):
            cluster.hold(request(ask, str(at)), decision.node, decision.allocation)


@given(
    cluster=clusters((UNITS, 7)), mix=mixes((UNITS, 7)), pods=st.lists(asks, min_size=1, max_size=8)
)
@settings(deadline=None, max_examples=60)
def test_the_compiled_part_gives_the_same_numbers(
    cluster: ClusterModel, mix: Mix, pods: list[Ask]
) -> None:
    assert LIBRARY is not None
    view, nodes, typical = view_of(cluster.columns), nodes_of(cluster), typical_pods(mix)
    assert view is not None
    for at, ask in enumerate(pods):
        expected = rises_of(typical, cluster.columns, ask, nodes)
        found = rises_by(LIBRARY, view, typical.view, ask, nodes)
        assert found.tolist() == expected.tolist()
        decision = decide(cluster, request(ask, str(at)), POLICIES["fgd"](mix))
        if isinstance(decision, Placement):
            cluster.hold(request(ask, str(at)), decision.node, decision.allocation)


@given(weight=st.integers(1, 20_000), data=st.data())
def test_the_steps_of_costs_are_those_of_the_published_scale(
    weight: int, data: st.DataObject
) -> None:
    steps = steps_of(weight)
    rises = st.one_of(
        st.integers(-64_000 * weight, 64_000 * weight), st.sampled_from(steps.tolist())
    )
    rise = data.draw(rises) + data.draw(st.integers(-1, 1))
    published = -int(100 / (1 + np.exp(rise / (weight * 1000))))
    assert np.searchsorted(steps, rise, side="right") - STEPS == published
