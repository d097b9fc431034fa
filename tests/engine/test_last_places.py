"""Where more is asked for than fits, small pods leave the last places to larger ones."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.core.gpu import Card, GpuAsk, GpuMode, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide, decide_on
from gpupool.engine.last_places import LEFT_S, FreedNodes, counted, is_last_place
from gpupool.engine.packing import Packing
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.places import MOST_CARDS, Place, Places, Room, places_of, unserved_of
from gpupool.engine.policies.policy import Ask
from gpupool.engine.policies.scarcity import Gives, Machines, market_of
from kubeclient.placement import NodeOperator, NodeRequirement, NodeTerm
from tests.engine.building import ROOMY, cluster_of, whole

NODES, CARDS = 16, 8
EMPTY, *OTHERS = [f"n{at:02}" for at in range(NODES)]


def node(name: str, mode: GpuMode = GpuMode.ANY) -> NodeInfo:
    cards = tuple(Card(at, f"{name}-{at}", "A", 10, unit_mib=1) for at in range(CARDS))
    return NodeInfo(name, allocatable=ROOMY, inventory=Inventory(cards), gpu_mode=mode)


def overloaded(
    stay: int = 90, pods: int = 1200, mode: GpuMode = GpuMode.ANY, cpu_milli: int = 1_000
) -> tuple[ClusterModel, Packing]:
    """Three in four pods ask for a card and one for eight, each of which stays while so many come:
    twice as much as there is room for. `cpu_milli`: beside each card.
    """
    cluster = cluster_of(*(node(name, mode) for name in (EMPTY, *OTHERS)))
    packing, running = Packing("residue"), deque[tuple[int, str]]()
    for at in range(pods):
        while running and running[0][0] <= at - stay:
            cluster.release(running.popleft()[1])
        cards = CARDS if at % 4 == 0 else 1
        pod = whole(f"p{at}", cards, resources={"cpu": cards * cpu_milli, "pods": 1})
        packing.count(cluster, pod)
        found = decide(cluster, pod, packing.policy)
        if isinstance(found, Placement):
            cluster.hold(pod, *found)
            running.append((at, pod.uid))
    return cluster, packing


def emptied(cluster: ClusterModel) -> str:
    """A node without pods; no card is free on others."""
    for held in list(cluster.holds()):
        if held.node == EMPTY:
            cluster.release(held.pod.uid)
    for at in range(NODES * CARDS):
        pod = whole(f"filler-{at}")
        found = decide_on(cluster, pod, Packing("best-fit").policy, OTHERS)
        if isinstance(found, Placement):
            cluster.hold(pod, *found)
    return EMPTY


def leaves(cluster: ClusterModel, packing: Packing, pod: PodRequest) -> bool:
    found = decide(cluster, pod, packing.policy)
    assert isinstance(found, Placement)
    return is_last_place(cluster, pod, packing.policy, found)


def test_a_pod_of_one_card_leaves_the_last_empty_machine_to_pods_of_eight() -> None:
    cluster, packing = overloaded()
    emptied(cluster)
    assert packing.overload > 1
    assert leaves(cluster, packing, whole("small"))
    assert not leaves(cluster, packing, whole("large", CARDS))


def test_it_takes_the_rest_of_a_machine_that_is_used_already() -> None:
    cluster, packing = overloaded()
    name = emptied(cluster)
    found = decide(cluster, whole("first"), packing.policy)
    assert isinstance(found, Placement)
    assert found.node == name
    cluster.hold(whole("first"), *found)
    assert not leaves(cluster, packing, whole("small"))


def test_a_share_may_use_the_rest_of_a_card_on_a_machine_that_is_a_place_otherwise() -> None:
    cluster, packing = overloaded()
    emptied(cluster)
    share = replace(whole("share"), gpus=(GpuAsk("main", units=1),))
    found = decide(cluster, share, packing.policy)
    assert isinstance(found, Placement)
    assert is_last_place(cluster, share, packing.policy, found)
    cluster.hold(share, *found)
    assert not leaves(cluster, packing, replace(share, uid="other"))


def test_a_pod_of_two_containers_with_a_card_each_leaves_it_too() -> None:
    cluster, packing = overloaded()
    emptied(cluster)
    both = (GpuAsk("one", whole=1), GpuAsk("two", whole=1))
    assert leaves(cluster, packing, replace(whole("pod"), gpus=both))


def test_a_pod_that_likes_the_empty_machine_takes_it() -> None:
    """It was not chosen because nothing else is free."""
    cluster, packing = overloaded()
    state = cluster.state(emptied(cluster))
    assert state is not None
    cluster.set_node(replace(state.node, labels={"zone": "a"}))
    cluster.release(next(each.pod.uid for each in cluster.holds() if each.pod.gpus[0].whole == 1))
    likes = ((1, NodeTerm((NodeRequirement("zone", NodeOperator.IN, ("a",)),))),)
    assert decide(cluster, whole("small"), packing.policy).node in OTHERS  # type: ignore[union-attr]
    assert not leaves(cluster, packing, replace(whole("small"), preferred=likes))


def test_pods_leave_also_where_others_wait() -> None:
    """Of those that wait nobody knows how long they will stay."""
    cluster, packing = cluster_of(*map(node, (EMPTY, *OTHERS))), Packing("residue")
    running, waiting = deque[tuple[int, str]](), list[PodRequest]()
    for at in range(1200):
        while running and running[0][0] <= at - 60:
            cluster.release(running.popleft()[1])
        waiting.append(whole(f"p{at}", CARDS if at % 4 == 0 else 1))
        packing.count(cluster, waiting[-1])
        for pod in (waiting[0], waiting[-1]):
            found = decide(cluster, pod, packing.policy)
            if isinstance(found, Placement) and pod in waiting:
                cluster.hold(pod, *found)
                running.append((at, pod.uid))
                waiting.remove(pod)
    assert len(waiting) > 100
    prices = packing.policy.prices
    assert prices is not None
    assert prices.places is not None


def test_nobody_leaves_anything_while_the_cluster_fills() -> None:
    """Pods that come may all be of one burst, and no large one may come again."""
    cluster, packing = overloaded(stay=10_000)
    emptied(cluster)
    assert not leaves(cluster, packing, whole("small"))


def test_nobody_leaves_anything_where_all_fits() -> None:
    cluster, packing = overloaded(stay=20)
    emptied(cluster)
    assert packing.overload == 1
    assert not leaves(cluster, packing, whole("small"))


def test_a_node_that_is_newer_than_the_prices_is_for_all() -> None:
    cluster, packing = overloaded()
    emptied(cluster)
    cards = tuple(Card(at, f"new-{at}", "B", 10, unit_mib=1) for at in range(CARDS))
    cluster.set_node(NodeInfo("new", allocatable=ROOMY, inventory=Inventory(cards)))
    pod = replace(whole("small"), node_name="new")
    found = decide(cluster, pod, packing.policy)
    assert isinstance(found, Placement)
    assert not is_last_place(cluster, pod, packing.policy, found)


def test_pods_that_come_and_go_beside_a_place_do_not_keep_it_for_ever() -> None:
    ends = FreedNodes()
    assert ends.for_all_s("n") < 0
    ends.ended("n", 100)
    ends.ended("n", 100 + LEFT_S - 1)
    assert ends.for_all_s("n") == 100 + LEFT_S
    ends.forget_old(100 + LEFT_S - 1)
    assert ends.for_all_s("n") == 100 + LEFT_S
    ends.ended("n", 5_000)
    assert ends.for_all_s("n") == 5_000 + LEFT_S
    ends.forget_old(5_000 + LEFT_S)
    assert ends.for_all_s("n") < 0


likely = st.lists(st.floats(0, 1), min_size=3, max_size=3)
SIZES = (1, 4, 8)
PLACES = (tuple(map(Place, SIZES)),)


def loss(places: Places, untouched: int, taken: int) -> int:
    """On a node with CPU and memory for all."""
    return places.loss(0, Room(untouched, 0, 0), Room(untouched - taken, 0, 0))


@given(likely, likely)
def test_nobody_wins_by_cards_that_are_taken(chances: list[float], unserved: list[float]) -> None:
    found = places_of(np.array([chances]), PLACES, np.array(unserved))
    for taken in range(1, MOST_CARDS + 1):
        losses = [loss(found, untouched, taken) for untouched in range(taken, MOST_CARDS + 1)]
        assert min(losses) >= 0
        assert losses[0] == 0  # who takes all of it is worth as much


@pytest.mark.parametrize(
    ("untouched", "lost"),
    [(8, 32 - 7 - 1), (7, 0), (1, 0), (9, 0), (16, 24)],
)
def test_only_whole_places_count(untouched: int, lost: int) -> None:
    """Eight cards for a pod that wants eight count four times."""
    found = places_of(np.array([[1.0, 1.0]]), ((Place(1), Place(8)),), np.ones(2))
    assert loss(found, untouched, 1) == 1000 * lost


def places(unserved_of_four: float, unserved_of_eight: float) -> Places:
    return places_of(np.ones((1, 3)), PLACES, np.array([1, unserved_of_four, unserved_of_eight]))


def test_a_pod_of_four_cards_breaks_a_place_for_eight_where_it_gets_in_less_often() -> None:
    assert loss(places(0.5, 0.6), 8, 4) > 0
    assert loss(places(0.6, 0.5), 8, 4) == 0
    # A pod of one card breaks neither, however well the large ones are served.
    assert loss(places(0.0, 0.0), 8, 1) == loss(places(1.0, 1.0), 8, 1) > 4000
    assert loss(places(0.9, 0.5), 4, 1) > 4000


def test_who_takes_a_whole_place_of_its_size_takes_it_from_nobody() -> None:
    for unserved in (0.0, 0.5, 1.0):
        assert loss(places(unserved, 0.5), 4, 4) == 0
        assert loss(places(0.5, unserved), 8, 8) == 0


@given(st.floats(0, 1), st.floats(0, 1))
def test_where_one_size_is_asked_for_its_pods_leave_nothing_to_one_another(
    chance: float, unserved: float
) -> None:
    found = places_of(np.full((1, 2), chance), ((Place(1), Place(2)),), np.array([1, unserved]))
    assert {loss(found, untouched, 2) for untouched in range(2, MOST_CARDS + 1)} == {0}


FED = ((Place(1), Place(4, 32_000, 1_000), Place(8, 64_000, 2_000)),)
AMPLE = 10**6


@pytest.mark.parametrize(
    ("cpu_milli", "memory_mib", "is_broken"),
    [(64_000, AMPLE, True), (63_999, AMPLE, False), (AMPLE, 2_000, True), (AMPLE, 1_999, False)],
)
def test_a_machine_without_cpu_or_memory_for_a_large_pod_is_no_place_for_it(
    cpu_milli: int, memory_mib: int, is_broken: bool
) -> None:
    """What is left feeds four cards all the same, beside the one that is taken."""
    found = places_of(np.ones((1, 3)), FED, np.ones(3))
    before = Room(8, cpu_milli, memory_mib)
    for_eight = found.loss(0, before, before._replace(untouched=7)) > 0
    assert for_eight == is_broken


def test_pods_of_one_size_leave_nothing_to_one_another_though_half_ask_for_more_cpu() -> None:
    sizes = (Place(1), Place(4, 32_000))
    wants_more = whole("four", 4, resources={"cpu": 33_000})
    assert counted(wants_more, 4, sizes) == Place(4, 32_000)
    found = places_of(np.ones((1, 2)), (sizes,), np.array([1, 0.5]))
    room = Room(8, 64_000, 0)
    assert found.loss(0, room, room.after(counted(wants_more, 4, sizes))) == 0
    # A pod of another size takes what it takes.
    assert counted(replace(wants_more, gpus=(GpuAsk("c", whole=2),)), 2, sizes) == Place(2, 33_000)


def test_a_place_needs_what_those_pods_ask_for_that_fit_on_such_a_machine() -> None:
    """Neither what others ask for that need a larger one, nor what fits nowhere."""
    wanted = ((96_000, 50), (16_000, 30), (640_000, 900))
    mix = Mix(tuple(Demand(Ask(8, 0, 0, cpu, 0), (), pods) for cpu, pods in wanted), (160,), (10,))
    machines = Machines([0, 0, 0], [8, 8, 2], [128_000, 32_000, 64_000], [1, 1, 1], [Gives()] * 3)
    places = market_of(mix, machines).places
    assert [of_class[1].cpu_milli for of_class in places[:2]] == [96_000, 16_000]
    # Where none of them fits nothing is known, and cards alone count.
    assert places[2][1] == Place(8)


def test_a_place_is_broken_by_its_cpu_alone() -> None:
    found = places_of(np.ones((1, 3)), FED, np.ones(3))
    room = Room(8, 96_000, AMPLE)
    assert found.loss(0, room, room._replace(cpu_milli=64_000)) == 0
    assert found.loss(0, room, room._replace(cpu_milli=32_000)) > 4_000
    # All of it is in use already.
    full = Room(8, 31_999, AMPLE)
    assert found.loss(0, full, full._replace(cpu_milli=0)) == 0


def test_a_pod_of_one_card_takes_a_machine_whose_cpu_others_use() -> None:
    """No large pod can come there, and the cards would be idle for nobody."""
    cluster, packing = overloaded()
    name = emptied(cluster)
    assert leaves(cluster, packing, whole("small"))
    cluster.hold(without_cards("host", ROOMY["cpu"] - CARDS * 1_000 + 1), name)
    assert not leaves(cluster, packing, whole("small"))


def without_cards(uid: str, cpu_milli: int) -> PodRequest:
    return PodRequest(uid, "default", uid, {"cpu": cpu_milli, "pods": 1})


def test_a_pod_without_cards_leaves_the_cpu_of_a_place_to_large_pods() -> None:
    """Else it would take the machine that pods of one card have left to larger ones."""
    cluster, packing = overloaded(cpu_milli=4_000)
    name = emptied(cluster)
    for at, other in enumerate(OTHERS):
        cluster.hold(without_cards(f"host-{at}", ROOMY["cpu"]), other)
    found = decide(cluster, without_cards("host", 40_000), packing.policy)
    assert isinstance(found, Placement)
    assert found.node == name
    assert is_last_place(cluster, without_cards("host", 40_000), packing.policy, found)
    # Beside this one there is CPU for eight cards.
    assert not is_last_place(cluster, without_cards("host", 30_000), packing.policy, found)


def test_no_more_places_are_left_than_large_pods_take_in_a_while() -> None:
    """Whatever keeps large pods from them."""
    cluster, packing = overloaded()
    emptied(cluster)
    for at in range(6):
        cluster.set_node(node(f"new-{at}"))
    for at in range(40):
        packing.count(cluster, whole(f"later-{at}", CARDS if at % 4 == 0 else 1))
    assert packing.overload > 1
    assert not leaves(cluster, packing, whole("small"))


def test_a_size_is_unserved_by_its_own_pods_alone() -> None:
    """A pod of eight cards counts as two places for four, and so many do not wait there."""
    wanted = np.array([[90.0, 2 * 10 + 6, 10]])
    running = np.array([[50.0, 2 * 9 + 3, 9]])
    assert unserved_of(wanted, running, SIZES)[1:].tolist() == pytest.approx([0.5, 0.1])
    assert unserved_of(wanted, 2 * wanted, SIZES)[1:].tolist() == [0, 0]


def test_sizes_that_do_not_divide_one_another_are_kept_apart() -> None:
    """All pods of eight run and none of two: those that run are not taken for pods of two."""
    sizes, two, three, eight = (1, 2, 3, 8), 30.0, 12.0, 10.0
    wanted = np.array([[900.0, two + three + 4 * eight, three + 2 * eight, eight]])
    running = np.array([[100.0, 6 + 4 * eight, 6 + 2 * eight, eight]])
    assert unserved_of(wanted, running, sizes)[1:].tolist() == pytest.approx([1, 0.5, 0])


def test_a_share_leaves_nothing_to_whole_cards_where_a_node_gives_out_none() -> None:
    cluster, packing = overloaded(mode=GpuMode.WHOLE)
    emptied(cluster)
    for name in ("shared-0", "shared-1"):
        cluster.set_node(node(name, GpuMode.SHARED))
    for at in range(40):
        packing.count(cluster, whole(f"later-{at}", CARDS))
    share = replace(whole("share"), gpus=(GpuAsk("main", units=1),))
    assert not leaves(cluster, packing, share)
    assert leaves(cluster, packing, whole("small"))
