"""Figures of how full the cards are: they agree with counting one card after the other."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpupool.core.gpu import (
    Allocation,
    Card,
    CardHealth,
    CardShare,
    ContainerGpus,
    GpuMode,
    Inventory,
    Isolation,
)
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.room import GANG_SIZES, ModelRoom, cluster_room

UNITS = 10


def node(name: str, cards: int, mode: GpuMode) -> NodeInfo:
    made = tuple(Card(at, f"{name}-{at}", "T4", UNITS * 1024) for at in range(cards))
    return NodeInfo(name, allocatable={"pods": 100}, inventory=Inventory(made), gpu_mode=mode)


def hold(cluster: ClusterModel, name: str, card: int, units: int, *, whole: bool = False) -> None:
    share = CardShare(f"{name}-{card}", card, units, units * 1024, UNITS)
    kind = Isolation.WHOLE if whole else Isolation.LIMIT
    allocation = Allocation((ContainerGpus("main", (share,), kind),))
    uid = f"{name}-{card}-{units}-{whole}"
    cluster.hold(PodRequest(uid, "default", uid, {}), name, allocation)


def test_a_cluster_without_cards_has_no_room() -> None:
    room = cluster_room(ClusterModel())
    assert room.models == {}
    assert set(room.gangs.values()) == {0}


def test_what_is_free_on_a_used_card_is_stranded() -> None:
    cluster = ClusterModel()
    cluster.set_node(node("a", 3, GpuMode.SHARED))
    hold(cluster, "a", 0, 4)
    hold(cluster, "a", 1, UNITS)
    expected = ModelRoom(3, 1, 3 * 10240, 14 * 1024, 6 * 1024, 10240)
    assert cluster_room(cluster).models == {"T4": expected}
    # No card of a shared node is given out whole.
    assert set(cluster_room(cluster).gangs.values()) == {0}


def test_sick_cards_and_closed_nodes_have_no_room() -> None:
    cluster = ClusterModel()
    whole = node("a", 4, GpuMode.WHOLE)
    assert whole.inventory is not None
    first, *others = whole.inventory.cards
    sick = replace(first, health=CardHealth.UNHEALTHY)
    cluster.set_node(replace(whole, inventory=Inventory((sick, *others))))
    assert cluster_room(cluster).models["T4"].cards == 3
    assert cluster_room(cluster).gangs == {1: 3, 2: 1, 4: 0, 8: 0}
    cluster.set_node(replace(whole, unschedulable=True))
    assert set(cluster_room(cluster).gangs.values()) == {0}


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), max_size=6))
def test_gangs_are_those_that_a_count_by_hand_finds(nodes: list[tuple[int, int]]) -> None:
    cluster = ClusterModel()
    for at, (cards, used) in enumerate(nodes):
        cluster.set_node(node(f"n{at}", cards, GpuMode.WHOLE))
        for card in range(min(cards, used)):
            hold(cluster, f"n{at}", card, UNITS, whole=True)
    room = cluster_room(cluster)
    for size in GANG_SIZES:
        assert room.gangs[size] == sum((cards - min(cards, used)) // size for cards, used in nodes)
    if nodes:
        found = room.models["T4"]
        assert found.allocated_mib + found.free_cards * 10240 == found.memory_mib
        assert found.stranded_mib == 0
