"""Refusals: how much of what is asked for gets a place."""

from dataclasses import replace

import pytest

from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine import refusals as refusals_module
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.packing import Packing
from gpupool.engine.refusals import MOST_OVERLOAD, Refusals, overload
from gpupool.engine.shapes import Shape
from tests.engine.building import ROOMY, cluster_of, whole


def node(name: str, cards: int = 8) -> NodeInfo:
    inventory = Inventory(
        tuple(Card(at, f"{name}-{at}", "A", 10, unit_mib=1) for at in range(cards))
    )
    return NodeInfo(name, allocatable=ROOMY, inventory=inventory)


def cards_of(shape: Shape) -> int:
    return shape.kind.ask.cards


def held_in(cluster: ClusterModel) -> int:
    return sum(held.pod.gpus[0].whole for held in cluster.holds())


def seen(cluster: ClusterModel, *pods: tuple[PodRequest, bool]) -> Refusals:
    """Pods that asked one after the other, and whether each got a place."""
    refusals = Refusals()
    for pod, got_in in pods:
        refusals.count(pod.uid, Shape(pod))
        if got_in:
            cluster.hold(pod, "n")
    refusals.look(cluster, cards_of, held_in(cluster))
    return refusals


def test_where_nobody_has_asked_nobody_was_refused() -> None:
    assert Refusals().accepted == 1


def test_pods_that_got_no_place_count_by_what_they_asked_for() -> None:
    found = seen(cluster_of(node("n")), (whole("a", 6), False), (whole("b", 2), True))
    assert found.accepted == pytest.approx(1 / 4, abs=0.01)


def test_pods_behind_the_last_one_that_got_a_place_were_not_tried_yet() -> None:
    cluster = cluster_of(node("n"))
    found = seen(cluster, (whole("a"), True), (whole("b"), False), (whole("c"), False))
    assert found.accepted == 1
    cluster.hold(whole("c"), "n")
    found.look(cluster, cards_of, held_in(cluster))
    assert found.accepted == pytest.approx(2 / 3, abs=0.01)


def test_a_burst_of_pods_that_wait_to_be_tried_is_no_refusal() -> None:
    burst = [(whole(f"u{at}"), False) for at in range(5_000)]
    found = seen(cluster_of(node("n")), *burst)
    assert found.accepted == 1
    assert len(found._open) <= 1_024


def test_pods_that_have_ended_meanwhile_were_not_refused() -> None:
    cluster, refusals = cluster_of(node("n")), Refusals()
    for pod in (whole("a"), whole("b"), whole("c")):
        refusals.count(pod.uid, Shape(pod))
        cluster.hold(pod, "n")
        cluster.release(pod.uid)
    refusals.look(cluster, cards_of, held_in(cluster))
    assert refusals.accepted == 1


def test_the_cluster_remembers_only_so_many_pods_that_were_placed() -> None:
    cluster = cluster_of(node("n"))
    for at in range(5_000):
        cluster.hold(whole(f"u{at}"), "n")
        cluster.release(f"u{at}")
    assert len(cluster.placed) <= 1_024


def test_what_was_refused_long_ago_fades(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals_module, "_FADE", 0.5)
    cluster = cluster_of(node("n"))
    found = seen(cluster, (whole("a", 8), False), *((whole(f"b{at}"), True) for at in range(8)))
    assert found.accepted > 0.95


def test_pods_that_cannot_be_placed_anywhere_do_not_count() -> None:
    cluster = cluster_of(node("n"))
    found = Refusals()
    for pod in (whole("a", 9), whole("b")):
        found.count(pod.uid, Shape(pod))
    cluster.hold(whole("b"), "n")
    found.look(cluster, lambda shape: 0 if cards_of(shape) > 8 else cards_of(shape), 1)
    assert found.accepted == 1


@pytest.mark.parametrize(
    ("load", "expected"),
    [(0.0, 1.0), (0.95, 1.0), (1.0, 1.03), (1.2, 1.33), (9.5, MOST_OVERLOAD)],
)
def test_overload_is_what_is_asked_for_beside_what_fits(load: float, expected: float) -> None:
    assert overload(load) == pytest.approx(expected)


def test_where_pods_stay_only_a_full_cluster_knows_its_load() -> None:
    full = seen(cluster_of(node("n")), (whole("a", 2), False), (whole("b", 8), True))
    assert full.load(8) == pytest.approx(10 / 8, abs=0.01)
    # Whatever was refused: there is room.
    assert full.load(10) == 0
    nobody = seen(cluster_of(node("n")), (whole("a", 8), True))
    assert nobody.load(8) == 1


def test_where_pods_leave_the_load_is_known_while_the_cluster_still_fills() -> None:
    """A pod comes in each step, and one of 22 that run leaves: in the end, 22 would run."""
    cluster, refusals, due = cluster_of(node("n"), node("m")), Refusals(), 0.0
    for at in range(20):
        pod = whole(f"u{at}")
        refusals.count(pod.uid, Shape(pod))
        cluster.hold(pod, "n" if at % 2 else "m")
        due += held_in(cluster) / 22
        if due >= 1:
            due -= 1
            cluster.release(next(cluster.holds()).pod.uid)
        refusals.look(cluster, cards_of, held_in(cluster))
    assert held_in(cluster) < 14
    assert refusals.load(20) == pytest.approx(22 / 20, rel=0.1)


def test_what_runs_when_a_scheduler_starts_has_not_come_just_now() -> None:
    cluster = cluster_of(node("n"), node("m"))
    for at in range(8):
        cluster.hold(whole(f"old{at}"), "m")
    found = seen(cluster, (whole("a"), True))
    for at in range(8):
        cluster.release(f"old{at}")
    cluster.hold(whole("b"), "n")
    found.look(cluster, cards_of, held_in(cluster))
    # Much more leaves than comes.
    assert 0 < found.load(16) < 0.2


def test_a_full_cluster_that_turns_pods_away_knows_its_overload() -> None:
    cluster, packing = cluster_of(node("n"), node("m")), Packing("residue")
    for at in range(80):
        pod = whole(f"u{at}", 1)
        packing.count(cluster, pod)
        decision = decide(cluster, pod, packing.policy)
        if isinstance(decision, Placement):
            cluster.hold(pod, decision.node, decision.allocation)
        elif at % 2:
            cluster.release(next(cluster.holds()).pod.uid)  # one ends for every two that come
    assert packing.overload > 1.2


def test_a_cluster_with_room_has_no_overload() -> None:
    cluster, packing = cluster_of(node("n"), node("m")), Packing("residue")
    for at in range(80):
        packing.count(cluster, whole(f"u{at}"))
    assert packing.overload == 1


def test_pods_that_were_there_before_anybody_was_counted_may_leave() -> None:
    """Another scheduler's, with something that this one does not know, hold all cards."""
    cluster, packing = cluster_of(node("n")), Packing("residue")
    for at in range(8):
        old = replace(whole(f"old{at}"), unsupported=("resource claims",))
        found = decide(cluster, whole(f"old{at}"), packing.policy)
        assert isinstance(found, Placement)
        packing.count(cluster, old)
        cluster.hold(old, *found)
    for at in range(40):  # none of them fits
        packing.count(cluster, whole(f"waits{at}"))
    cluster.release("old0")
    packing.count(cluster, whole("next"))
    assert packing.overload >= 1
