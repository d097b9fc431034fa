"""How many nodes of which pools are needed: the smallest machines that fit, groups as a whole."""

from dataclasses import replace
from typing import Any

import pytest

from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest, PodTerm
from gpupool.engine import growth as growing
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import decide_on
from gpupool.engine.future_room import Place
from gpupool.engine.growth import GrowingPool, Together, growth, shrink_again
from gpupool.engine.policies import DEFAULT, POLICIES
from gpupool.engine.policies.mix import Mix
from kubeclient.names import LABEL_HOSTNAME
from kubeclient.selectors import parse_label_selector
from tests.engine.building import cluster_of, gpu_node, gpu_pod, whole

POLICY = POLICIES[DEFAULT](Mix())


def request(number: int, cpu: int) -> PodRequest:
    return PodRequest(f"u{number}", "default", f"p{number}", resources={"cpu": cpu, "pods": 1})


def pool(name: str, cpus: int, more: int = 9) -> GrowingPool:
    node = NodeInfo(name, allocatable={"cpu": cpus * 1000, "pods": 10})
    return GrowingPool(name, node, more)


def needed(pools: list[GrowingPool], cpus: list[int], most: int = 99) -> dict[str, int]:
    waiting = [Together((request(number, cpu),)) for number, cpu in enumerate(cpus)]
    return dict(growth(pools, ClusterModel(), waiting, POLICY, most).further)


@pytest.mark.parametrize(
    ("cpus", "limit", "wanted"),
    [
        ([], 9, 0),
        ([1000, 1000, 1000, 1000], 9, 1),
        ([3000, 3000, 1000, 1000], 9, 2),  # the small ones fill up what the large ones leave
        ([4000] * 5, 3, 3),
        ([5000], 9, 0),
        ([5000, 1000], 9, 1),
        ([1000], 0, 0),
    ],
)
def test_waiting_pods_are_placed_one_by_one(cpus: list[int], limit: int, wanted: int) -> None:
    assert sum(needed([pool("a", 4, limit)], cpus).values()) == wanted
    assert sum(needed([pool("a", 4)], cpus, most=limit).values()) == wanted


def test_the_smallest_machine_that_fits_is_added() -> None:
    pools = [pool("large", 16), pool("small", 4, more=1)]
    assert needed(pools, [3000]) == {"small": 1}
    assert needed(pools, [8000]) == {"large": 1}
    assert needed(pools, [3000, 3000]) == {"small": 1, "large": 1}


def test_free_room_on_existing_nodes_is_used_first() -> None:
    room = ClusterModel()
    room.set_node(pool("there", 4).node)
    room.hold(request(100, 2000), "there")
    waiting = [Together((request(number, 2000),)) for number in range(3)]
    found = growth([pool("a", 4)], room, waiting, POLICY, 99)
    assert found.further == {"a": 1}
    assert found.used == {"there", "more/a/0"}


def test_a_group_that_would_not_start_leaves_no_trace() -> None:
    pools = [pool("a", 4, more=2)]
    group = Together(tuple(request(number, 3000) for number in range(3)), least=3)
    alone = Together((request(9, 3000),))
    assert growth(pools, ClusterModel(), [group, alone], POLICY, 99).further == {"a": 1}
    enough = group._replace(least=2)
    assert growth(pools, ClusterModel(), [enough, alone], POLICY, 99).further == {"a": 2}


def test_what_fits_nowhere_is_tried_once_and_not_for_every_pod_like_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def counted(room: ClusterModel, pod: PodRequest, *rest: Any) -> Any:
        tried.append(pod.name)
        return decide_on(room, pod, *rest)

    monkeypatch.setattr(growing, "decide_on", counted)
    assert needed([pool("a", 4, more=1)], [5000] * 500) == {}
    assert tried == ["p0"]


def test_a_pod_that_waits_for_the_one_before_it_is_tried_again() -> None:
    web = parse_label_selector("app=web")
    near = PodTerm(web, LABEL_HOSTNAME, ("default",))
    lonely = [replace(request(number, 100), affinity=(near,)) for number in (0, 2)]
    other = replace(request(1, 100), labels={"app": "web"})
    waiting = [Together((each,)) for each in (lonely[0], other, lonely[1])]
    found = growth([pool("a", 4)], ClusterModel(), waiting, POLICY, 99)
    assert found.used == {"more/a/0"}
    assert found.further == {"a": 1}


def test_growth_can_be_undone() -> None:
    room = ClusterModel()
    room.set_node(pool("there", 4).node)
    waiting = [Together((request(number, 3000),)) for number in range(3)]
    grown = growth([pool("a", 4)], room, waiting, POLICY, 99)
    assert (len(room), len(grown.placed)) == (3, 3)
    shrink_again(room, grown)
    assert len(room) == 1
    assert not list(room.holds())


def test_room_that_is_kept_for_a_group_is_not_for_others_and_its_nodes_are_used() -> None:
    """One of its two nodes is empty, and waits for the other one."""
    room = cluster_of(gpu_node("empty", 2), gpu_node("busy", 2))
    room.hold(gpu_pod("runs", resources={"cpu": 8000}), "busy")
    pods = tuple(whole(f"g{at}", 2, resources={"cpu": 60_000}) for at in range(2))
    kept = tuple(
        Place(each, node, frozenset((0, 1)))
        for each, node in zip(pods, ("empty", "busy"), strict=True)
    )
    further = GrowingPool("one", gpu_node("one", 1), 9)
    waiting = [Together(pods, 2, kept), Together((whole("small"),))]
    grown = growth([further], room, waiting, POLICY, 9)
    assert grown.further == {"one": 1}
    assert {"empty", "busy"} < grown.used
    # Where the group can start, nothing is kept for it.
    room.release("runs")
    for each in pods:
        room.unreserve(each.uid)
    assert set(growth([], room, waiting[:1], POLICY, 9).placed.values()) == {"empty", "busy"}
