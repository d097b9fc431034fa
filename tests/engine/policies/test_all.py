"""Properties that every policy must have."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ask
from tests.engine.policies.clusters import (
    as_nodes,
    asks,
    clusters,
    fits,
    fitting,
    free_of,
    mixes,
    nodes_of,
    request,
)

every_policy = pytest.mark.parametrize("name", POLICIES)


def test_the_default_is_a_policy() -> None:
    assert DEFAULT in POLICIES


@every_policy
@given(cluster=clusters(), mix=mixes(), pods=st.lists(asks, max_size=12))
@settings(deadline=None, max_examples=40)
def test_a_pod_gets_cards_that_have_room(
    name: str, cluster: ClusterModel, mix: Mix, pods: list[Ask]
) -> None:
    policy = POLICIES[name](mix)
    for at, ask in enumerate(pods):
        pod = request(ask, str(at))
        possible = [node for node in nodes_of(cluster) if fits(cluster, ask, int(node))]
        decision = decide(cluster, pod, policy)
        assert isinstance(decision, Placement) == bool(possible)
        if isinstance(decision, Placement):
            state = cluster.state(decision.node)
            assert state is not None
            [gpus] = decision.allocation.containers
            cards = [share.index for share in gpus.shares]
            assert len(cards) == len(set(cards)) == ask.cards
            assert set(cards) <= set(fitting(cluster, ask, state.index))
            cluster.hold(pod, decision.node, decision.allocation)
            assert min(free_of(cluster, state.index)) >= 0


@every_policy
@given(cluster=clusters(), mix=mixes(), pods=st.lists(asks, max_size=6), ask=asks)
@settings(deadline=None, max_examples=40)
def test_a_cost_depends_on_its_own_node_alone(
    name: str, cluster: ClusterModel, mix: Mix, pods: list[Ask], ask: Ask
) -> None:
    policy = POLICIES[name](mix)
    for at, each in enumerate(pods):
        decision = decide(cluster, request(each, str(at)), policy)
        if isinstance(decision, Placement):
            cluster.hold(request(each, str(at)), decision.node, decision.allocation)
    nodes = [int(node) for node in nodes_of(cluster) if fits(cluster, ask, int(node))]
    together = policy.costs(cluster.columns, ask, as_nodes(*nodes)).tolist() if nodes else []
    alone = [policy.costs(cluster.columns, ask, as_nodes(node)).tolist()[0] for node in nodes]
    assert together == alone


@every_policy
@given(cluster=clusters(), mix=mixes(), ask=asks)
@settings(deadline=None, max_examples=30)
def test_costs_are_whole_numbers_that_leave_room(
    name: str, cluster: ClusterModel, mix: Mix, ask: Ask
) -> None:
    nodes = [int(node) for node in nodes_of(cluster) if fits(cluster, ask, int(node))]
    costs = POLICIES[name](mix).costs(cluster.columns, ask, as_nodes(*nodes))
    assert costs.dtype.kind == "i"
    assert all(abs(cost) < 2**55 for cost in costs.tolist())
