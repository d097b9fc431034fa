"""Another share for a running pod: what the wish means, and each reason for which it is refused."""

from dataclasses import replace

import pytest

from gpupool.core.gpu import Allocation, CardHealth, CardShare, GpuAsk
from gpupool.core.pods import PodRequest
from gpupool.core.resize import ONLY
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.resize import NoResize, room_for, wanted_allocation, within_quotas
from tests.engine.building import cards, cluster_of, gpu_node, gpu_pod, place, shared


def placed(pod: PodRequest, count: int = 2) -> tuple[ClusterModel, Allocation]:
    cluster = cluster_of(gpu_node(count=count))
    given = place(cluster, pod)
    assert isinstance(given, Allocation), given
    return cluster, given


def wanted(
    cluster: ClusterModel, pod: PodRequest, given: Allocation, **wish: int
) -> Allocation | NoResize:
    state = cluster.state("n")
    assert state is not None
    return wanted_allocation(state, pod, given, wish)


def two_containers() -> PodRequest:
    return gpu_pod("u", GpuAsk("a", units=3), GpuAsk("b", units=4))


def units(given: Allocation | NoResize) -> dict[str, list[int]]:
    assert isinstance(given, Allocation), given
    return {gpus.container: [share.units for share in gpus.shares] for gpus in given.containers}


def test_only_the_named_container_gets_another_share() -> None:
    pod = two_containers()
    cluster, given = placed(pod)
    assert units(wanted(cluster, pod, given, a=5)) == {"a": [5], "b": [4]}


def test_a_wish_without_a_name_is_refused_when_several_containers_have_a_share() -> None:
    pod = two_containers()
    cluster, given = placed(pod)
    assert wanted(cluster, pod, given, **{ONLY: 5}) == NoResize(
        "2 of its containers have a share; say which one is meant"
    )


def test_init_containers_are_not_resized() -> None:
    pod = gpu_pod("u", GpuAsk("setup", units=2, is_init=True), GpuAsk("main", units=3))
    cluster, given = placed(pod)
    assert wanted(cluster, pod, given, setup=4) == NoResize("container setup is an init container")


def test_a_wish_is_refused_when_the_card_is_not_on_the_node_any_more() -> None:
    pod = shared("u", 3)
    cluster, given = placed(pod, count=1)
    (gpus,) = given.containers
    (share,) = gpus.shares
    cluster.set_node(gpu_node(inventory=cards("other", 1)))
    no = NoResize("card n-0 is not on node n any more")
    assert wanted(cluster, pod, given, c=4) == no
    grown = replace(gpus, shares=(replace(share, units=4),))
    assert room_for(cluster, "u", Allocation((grown,))) == no


def test_there_is_no_room_on_a_card_that_takes_no_pods() -> None:
    pod = shared("u", 3)
    cluster, given = placed(pod, count=1)
    more = wanted(cluster, pod, given, c=4)
    assert isinstance(more, Allocation)
    assert room_for(cluster, "u", more) is None
    sick = cards("n", 1, health=CardHealth.UNHEALTHY, reason="XID 79")
    cluster.set_node(gpu_node(inventory=sick))
    assert room_for(cluster, "u", more) == NoResize("card 0 is unhealthy: XID 79")


def test_a_pod_that_holds_nothing_has_neither_room_nor_a_quota() -> None:
    cluster = cluster_of(gpu_node())
    assert room_for(cluster, "nobody", Allocation()) == NoResize("its node is not there")
    assert within_quotas(cluster, "nobody", Allocation(), ()) == NoResize("its node is not there")


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (0, "container c: wanted a multiple of its 2 cards, found 0"),
        (5, "container c: wanted a multiple of its 2 cards, found 5"),
        (40, "card 0 has 15 units in all, 20 are asked for"),
    ],
)
def test_a_share_of_several_cards_is_equal_on_all_of_them(wish: int, words: str) -> None:
    pod = shared("u", 3, cards=2)
    cluster, given = placed(pod)
    assert wanted(cluster, pod, given, c=wish) == NoResize(words)
    assert units(wanted(cluster, pod, given, c=8)) == {"c": [4, 4]}


def test_the_limit_of_a_new_share_is_exact() -> None:
    pod = shared("u", 3)
    cluster, given = placed(pod)
    found = wanted(cluster, pod, given, c=6)
    assert isinstance(found, Allocation)
    assert found.containers[0].shares == (CardShare("n-0", 0, 6, 6452, 15),)
