from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ask
from tests.engine.policies.clusters import UNITS, asks, clusters, fits, free_of, nodes_of, request

BEST_FIT, SPREAD = (POLICIES[name](Mix()) for name in ("best-fit", "spread"))


def naive_left_over(cluster: ClusterModel, node: int) -> int:
    columns = cluster.columns
    gpu = 0
    for card, free in enumerate(free_of(cluster, node)):
        total = int(columns.card_total[card, node])
        gpu += min(free * 1000 // total, int(columns.card_compute[card, node]) * 10)
    return gpu * 16 + int(columns.cpu_free[node])


@given(cluster=clusters(), pods=st.lists(asks, max_size=10))
@settings(deadline=None, max_examples=60)
def test_best_fit_takes_the_fullest_node_and_then_the_fullest_card(
    cluster: ClusterModel, pods: list[Ask]
) -> None:
    for at, ask in enumerate(pods):
        possible = [int(node) for node in nodes_of(cluster) if fits(cluster, ask, int(node))]
        decision = decide(cluster, request(ask, str(at)), BEST_FIT)
        if not isinstance(decision, Placement):
            continue
        best = min(possible, key=lambda node: (naive_left_over(cluster, node), node))
        assert decision.node == cluster.at(best).node.name
        if ask.memory and ask.cards == 1 and not ask.compute:
            card = decision.allocation.containers[0].shares[0].index
            roomy = [free for free in free_of(cluster, best) if free >= ask.memory]
            if max(cluster.columns.card_compute[:, best]) == 100:
                assert free_of(cluster, best)[card] == min(roomy)
        cluster.hold(request(ask, str(at)), decision.node, decision.allocation)


def test_spread_takes_the_emptiest_card() -> None:
    ask = Ask(1, 2, 0, 0, 0)
    cluster = two_cards()
    for uid in ("a", "b"):
        decision = decide(cluster, request(ask, uid), SPREAD)
        assert isinstance(decision, Placement)
        cluster.hold(request(ask, uid), decision.node, decision.allocation)
    assert free_of(cluster, 0)[:2] == [UNITS - 2, UNITS - 2]


def two_cards() -> ClusterModel:
    cards = tuple(Card(index, f"c{index}", "m", UNITS, unit_mib=1) for index in range(2))
    cluster = ClusterModel()
    allocatable = {"cpu": 10, "memory": 2**30, "pods": 9}
    cluster.set_node(NodeInfo("n", allocatable=allocatable, inventory=Inventory(cards)))
    return cluster
