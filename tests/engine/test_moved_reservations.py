"""Reservations that get other room: when somebody looks, and how often they move."""

import pytest

from gpupool.engine import reservations
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.node_state import Held
from gpupool.engine.reservation import Waiting
from gpupool.engine.reservations import Reservations
from tests.engine.building import POLICY, cluster_of, gpu_node, whole


class Ends(dict[str, float]):
    """When each pod is expected to end, by uid."""

    def __call__(self, held: Held, _of: int) -> float:
        return self[held.pod.uid]


def cluster_with(ends: Ends) -> ClusterModel:
    """Each pod has a node with one card for itself."""
    cluster = cluster_of(*(gpu_node(f"n{at}", 1) for at in range(len(ends))))
    for uid in ends:
        found = decide(cluster, whole(uid), POLICY)
        assert isinstance(found, Placement)
        cluster.hold(whole(uid), *found)
    return cluster


def waiting(name: str, since_s: float = 0) -> Waiting:
    return Waiting(name, (whole(name),), since_s)


def test_a_late_reservation_moves_to_room_that_is_free_sooner_but_not_for_ever() -> None:
    ends = Ends(x=10.0, y=20.0)
    kept = Reservations(cluster_with(ends))
    kept.consider([waiting("u")], POLICY, ends, now_s=0)
    nodes = [kept.all()[0].nodes()]
    for now in range(600, 100_000, 200):
        late = next(uid for uid in ends if uid in kept.all()[0].seats[0].leaving)
        ends.update({uid: now + (9000.0 if uid == late else 5.0) for uid in ends})
        kept.move_late(POLICY, ends, now)
        if kept.all()[0].nodes() != nodes[-1]:
            nodes.append(kept.all()[0].nodes())
    assert len(nodes) == 13


def test_a_reservation_for_some_day_moves_when_other_room_will_be_free_soon() -> None:
    ends = Ends(x=1_000_000.0, y=2_000_000.0)
    kept = Reservations(cluster_with(ends))
    kept.consider([waiting("u")], POLICY, ends, now_s=0)
    assert kept.all()[0].seats[0].leaving == {"x"}
    ends["y"] = 1_000.0
    kept.move_late(POLICY, ends, 900)
    assert kept.all()[0].seats[0].leaving == {"y"}


def test_only_so_many_are_looked_at_and_the_others_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reservations, "_NODES_EACH", 1)
    ends = Ends(x=10.0, y=10.0)
    kept = Reservations(cluster_with(ends))
    kept.consider([waiting("u"), waiting("v", since_s=1)], POLICY, ends, now_s=0)
    looks = [each.look_s for each in kept.all()]
    for now in (1_000, 1_001):
        kept.move_late(POLICY, ends, now, most=1_000)
        looks += [each.look_s for each in kept.all()]
    assert looks == [600, 600, 1_600, 600, 1_600, 1_601]
