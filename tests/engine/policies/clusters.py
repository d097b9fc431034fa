"""Tiny clusters for policies: cards of few units, so that limits and ties occur."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from gpupool.core.gpu import Card, GpuAsk, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import Ask, Ints

MIB = 2**20
UNITS = 10  # of a card

asks = st.one_of(
    st.builds(Ask, st.integers(1, 4), st.just(0), st.just(0), st.integers(0, 6), st.integers(0, 6)),
    st.builds(
        Ask,
        st.integers(1, 2),
        st.integers(1, UNITS - 1),
        st.sampled_from([0, 0, 30]),
        st.integers(0, 6),
        st.integers(0, 6),
    ),
)
demands = st.builds(Demand, asks, st.sampled_from([(), (), (0,), (1,), (0, 1)]), st.integers(1, 9))


@st.composite
def mixes(draw: st.DrawFn, sizes: tuple[int, ...] = (UNITS,)) -> Mix:
    return Mix(tuple(draw(st.lists(demands, min_size=1, max_size=5))), (4, 4), sizes)


@st.composite
def clusters(draw: st.DrawFn, sizes: tuple[int, ...] = (UNITS,)) -> ClusterModel:
    """Up to four nodes of two models; `sizes` of cards."""
    cluster = ClusterModel()
    for at in range(draw(st.integers(1, 4))):
        cards = tuple(
            Card(index, f"{at}-{index}", f"model-{at % 2}", size, unit_mib=1)
            for index, size in enumerate(
                draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=4))
            )
        )
        allocatable = {"cpu": draw(st.integers(4, 12)), "memory": 12 * MIB, "pods": 99}
        cluster.set_node(NodeInfo(f"n{at}", allocatable=allocatable, inventory=Inventory(cards)))
    return cluster


def request(ask: Ask, uid: str) -> PodRequest:
    gpus = GpuAsk("main", units=ask.memory, cards=ask.cards, percent=ask.compute)
    if not ask.memory:
        gpus = GpuAsk("main", whole=ask.cards)
    resources = {"cpu": ask.cpu_milli, "memory": ask.memory_mib * MIB, "pods": 1}
    return PodRequest(uid, "default", uid, resources, gpus=(gpus,) if ask.cards else ())


def nodes_of(cluster: ClusterModel) -> Ints:
    return cluster.all_nodes()


def free_of(cluster: ClusterModel, node: int) -> list[int]:
    free: Sequence[int] = cluster.columns.card_free[:, node].tolist()
    return list(free)


def fits(cluster: ClusterModel, ask: Ask, node: int) -> bool:
    """Computed naively, card by card."""
    columns = cluster.columns
    if columns.cpu_free[node] < ask.cpu_milli or columns.memory_free[node] < ask.memory_mib:
        return False
    return len(fitting(cluster, ask, node)) >= ask.cards


def fitting(cluster: ClusterModel, ask: Ask, node: int) -> list[int]:
    columns = cluster.columns
    found = []
    for card, free in enumerate(free_of(cluster, node)):
        whole = free == columns.card_total[card, node] and columns.card_compute[card, node] == 100
        part = free >= ask.memory and columns.card_compute[card, node] >= ask.compute
        if part if ask.memory else whole:
            found.append(card)
    return found


def as_nodes(*indexes: int) -> Ints:
    return np.array(indexes, dtype=np.intp)
