"""Refusals: how much of what is asked for gets a place."""

import pytest

from gpupool.core.gpu import Card, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.engine import refusals as refusals_module
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.kinds import Kind, kind_of
from gpupool.engine.packing import Packing
from gpupool.engine.refusals import MOST_OVERLOAD, Refusals, overload
from tests.engine.building import ROOMY, cluster_of, whole


def node(name: str, cards: int = 8) -> NodeInfo:
    inventory = Inventory(
        tuple(Card(at, f"{name}-{at}", "A", 10, unit_mib=1) for at in range(cards))
    )
    return NodeInfo(name, allocatable=ROOMY, inventory=inventory)


def cards_of(kind: Kind) -> int:
    return kind.ask.cards


def seen(cluster: ClusterModel, *pods: tuple[PodRequest, bool]) -> Refusals:
    """Pods that asked one after the other, and whether each got a place."""
    refusals = Refusals()
    for pod, got_in in pods:
        refusals.count(pod.uid, kind_of(pod))
        if got_in:
            cluster.hold(pod, "n")
    refusals.look(cluster, cards_of)
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
    found.look(cluster, cards_of)
    assert found.accepted == pytest.approx(2 / 3, abs=0.01)


def test_a_burst_of_pods_that_wait_to_be_tried_is_no_refusal() -> None:
    burst = [(whole(f"u{at}"), False) for at in range(5_000)]
    found = seen(cluster_of(node("n")), *burst)
    assert found.accepted == 1
    assert len(found._open) <= 1_024


def test_pods_that_have_ended_meanwhile_were_not_refused() -> None:
    cluster, refusals = cluster_of(node("n")), Refusals()
    for pod in (whole("a"), whole("b"), whole("c")):
        refusals.count(pod.uid, kind_of(pod))
        cluster.hold(pod, "n")
        cluster.release(pod.uid)
    refusals.look(cluster, cards_of)
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
        found.count(pod.uid, kind_of(pod))
    cluster.hold(whole("b"), "n")
    found.look(cluster, lambda kind: 0 if kind.ask.cards > 8 else kind.ask.cards)
    assert found.accepted == 1


@pytest.mark.parametrize(
    ("held", "accepted", "expected"),
    [
        (0.95, 1.0, 1.0),  # full, and nobody was refused
        (0.96, 0.8, 1.33),  # a fifth more than there is
        (0.5, 0.1, 1.0),  # whatever was refused: there is room
        (0.95, 0.0, MOST_OVERLOAD),
        (1.2, 0.01, MOST_OVERLOAD),
        (0.0, 0.0, 1.0),
    ],
)
def test_overload_is_what_is_asked_for_beside_what_fits(
    held: float, accepted: float, expected: float
) -> None:
    assert overload(held, accepted) == pytest.approx(expected)


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
