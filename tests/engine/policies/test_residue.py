from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import Ask
from tests.engine.policies.clusters import (
    MIB,
    UNITS,
    as_nodes,
    asks,
    clusters,
    fits,
    fitting,
    mixes,
    nodes_of,
    request,
)

HALF, MOST, WHOLE, EIGHT = (
    Ask(1, 5, 0, 1, 1),
    Ask(1, 8, 0, 1, 1),
    Ask(1, 0, 0, 1, 1),
    Ask(8, 0, 0, 8, 8),
)


def mix(*asks: Ask) -> Mix:
    return Mix(tuple(Demand(ask, (), 10) for ask in asks), (8, 8), (UNITS,))


def cluster(**cards: int) -> ClusterModel:
    made = ClusterModel()
    for at, (name, count) in enumerate(cards.items()):
        inventory = Inventory(
            tuple(Card(i, f"{name}-{i}", f"m{at}", UNITS, unit_mib=1) for i in range(count))
        )
        allocatable = {"cpu": 100, "memory": 100 * MIB, "pods": 99}
        made.set_node(NodeInfo(name, allocatable=allocatable, inventory=inventory))
    return made


def place(where: ClusterModel, ask: Ask, known: Mix) -> tuple[str, tuple[int, ...]]:
    uid = str(where.version)
    decision = decide(where, request(ask, uid), POLICIES["residue"](known))
    assert isinstance(decision, Placement)
    where.hold(request(ask, uid), decision.node, decision.allocation)
    shares = decision.allocation.containers[0].shares
    return decision.node, tuple(share.index for share in shares)


def test_halves_share_a_card() -> None:
    here = cluster(a=2)
    known = mix(HALF, MOST, WHOLE)
    assert place(here, HALF, known) == place(here, HALF, known) == ("a", (0,))
    assert place(here, MOST, known) == ("a", (1,))


def test_small_machines_are_filled_before_large_ones() -> None:
    here = cluster(large=8, small=2)
    known = mix(HALF, WHOLE, EIGHT)
    assert [place(here, WHOLE, known)[0] for _ in range(2)] == ["small", "small"]
    assert place(here, EIGHT, known)[0] == "large"


def test_a_pod_with_little_gpu_avoids_nodes_whose_cards_need_the_cpu() -> None:
    here = ClusterModel()
    for name, cpu in (("tight", 8), ("roomy", 64)):
        cards = tuple(Card(i, f"{name}-{i}", "m", UNITS, unit_mib=1) for i in range(2))
        allocatable = {"cpu": cpu, "memory": 100 * MIB, "pods": 99}
        here.set_node(NodeInfo(name, allocatable=allocatable, inventory=Inventory(cards)))
    known = mix(Ask(1, 0, 0, 4, 1))
    assert place(here, Ask(1, 5, 0, 5, 1), known)[0] == "roomy"


SIZES = (UNITS // 2, UNITS, 2 * UNITS)
mixed = st.one_of(
    st.tuples(clusters(), mixes()),
    st.tuples(clusters(SIZES), mixes(SIZES)),
    st.tuples(clusters(SIZES), mixes(SIZES[:2])),  # some cards are larger than any in the mix
    st.tuples(clusters(SIZES), mixes(SIZES[2:])),
)


@given(here=mixed, pods=st.lists(asks, max_size=8), ask=asks)
@settings(deadline=None, max_examples=60)
def test_the_cost_of_one_node_equals_its_cost_among_many(
    here: tuple[ClusterModel, Mix], pods: list[Ask], ask: Ask
) -> None:
    cluster, known = here
    policy = POLICIES["residue"](known)
    assert policy.cost is not None
    for at, other in enumerate(pods):
        decision = decide(cluster, request(other, str(at)), policy)
        if isinstance(decision, Placement):
            cluster.hold(request(other, str(at)), decision.node, decision.allocation)
    nodes = [int(n) for n in nodes_of(cluster) if fits(cluster, ask, int(n))]
    among_many = policy.costs(cluster.columns, ask, as_nodes(*nodes)).tolist()
    assert [policy.cost(cluster.columns, ask, node) for node in nodes] == among_many
    for node in nodes if ask.memory else ():
        chosen = policy.cards(cluster.columns, ask, node)
        assert len(set(chosen)) == ask.cards
        assert set(chosen) <= set(fitting(cluster, ask, node))


@given(cluster=clusters(SIZES), known=mixes(SIZES), ask=asks)
@settings(deadline=None, max_examples=60)
def test_the_cost_of_a_node_does_not_depend_on_cards_of_others(
    cluster: ClusterModel, known: Mix, ask: Ask
) -> None:
    policy = POLICIES["residue"](known)
    nodes = as_nodes(*(int(n) for n in nodes_of(cluster) if fits(cluster, ask, int(n))))
    before = policy.costs(cluster.columns, ask, nodes).tolist()
    many = Inventory(tuple(Card(i, f"many-{i}", "m", UNITS, unit_mib=1) for i in range(9)))
    cluster.set_node(NodeInfo("many", inventory=many))
    assert policy.costs(cluster.columns, ask, nodes).tolist() == before


def test_a_card_larger_than_any_in_the_mix_gets_a_cost() -> None:
    here = cluster(a=2)
    large = Inventory((Card(0, "b-0", "m", 3 * UNITS, unit_mib=1),))
    allocatable = {"cpu": 100, "memory": 100 * MIB, "pods": 99}
    here.set_node(NodeInfo("b", allocatable=allocatable, inventory=large))
    known = mix(HALF, MOST, WHOLE)
    assert {place(here, WHOLE, known)[0] for _ in range(3)} == {"a", "b"}
