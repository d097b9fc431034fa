"""Reservations settle: room that became free is kept instead of room that has to be waited for."""

from dataclasses import replace

from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.gang import decide_gang
from gpupool.engine.reservation import Waiting
from gpupool.engine.reservations import Reservations
from tests.engine.building import POLICY, cluster_of, gpu_node, whole
from tests.engine.reserving import full_cluster, soon, waiting


def end(cluster: ClusterModel, kept: Reservations, uid: str) -> list[str]:
    """Nodes on which room is kept no more, because the pod has ended."""
    held = cluster.held(uid)
    assert held is not None
    cluster.release(uid)
    kept.gone(uid)
    return [seat.placement.node for seat in kept.settle(held.node, POLICY)]


def uids_on(cluster: ClusterModel, node: str) -> list[str]:
    state = cluster.state(node)
    assert state is not None
    return sorted(held.pod.uid for held in state.pods.values() if not held.reserved)


def test_what_is_free_first_is_kept_wherever_it_is() -> None:
    """Each member of a gang waits for a node of its own, and two others are free before these."""
    cluster = full_cluster(*[1] * 32)
    kept = Reservations(cluster)
    (gang,) = kept.consider([waiting("gang", members=2)], POLICY, soon, now_s=0)
    before = gang.nodes()
    others = [f"n{at}" for at in range(32) if f"n{at}" not in before][:2]
    given_up = [node for other in others for node in end(cluster, kept, *uids_on(cluster, other))]
    assert set(given_up) == before
    assert gang.nodes() == set(others)
    assert not any(seat.leaving for seat in gang.seats)
    assert not isinstance(decide(cluster, whole("small"), POLICY), Placement)
    with kept.own_room("gang"):
        assert isinstance(decide_gang(cluster, gang.waiting.pods, POLICY, 2), dict)
    # Nobody waits any more for the pods on the nodes of before.
    for node in before:
        assert end(cluster, kept, *uids_on(cluster, node)) == []
        assert isinstance(decide(cluster, whole("small"), POLICY), Placement)


def test_the_more_important_and_then_the_older_one_gets_it() -> None:
    cluster = full_cluster(*[1] * 48)
    kept = Reservations(cluster)
    first = replace(whole("first"), priority=1)
    due = [Waiting("first", (first,), 5), waiting("old", since_s=1), waiting("young", since_s=2)]
    kept.consider(due, POLICY, soon, now_s=10)
    kept_nodes = {node for each in kept.all() for node in each.nodes()}
    others = [f"n{at}" for at in range(48) if f"n{at}" not in kept_nodes]
    for name, other in zip(("first", "old", "young"), others, strict=False):
        end(cluster, kept, *uids_on(cluster, other))
        found = kept.get(name)
        assert found is not None
        assert found.nodes() == {other}


def test_members_that_wait_for_one_pod_still_do_when_one_of_them_finds_room() -> None:
    cluster = cluster_of(gpu_node("a", 2), *(gpu_node(f"b{at}", 1) for at in range(31)))
    for uid, cards in (("both", 2), *((f"run-{at}", 1) for at in range(31))):
        found = decide(cluster, whole(uid, cards), POLICY)
        assert isinstance(found, Placement)
        cluster.hold(whole(uid, cards), *found)
    kept = Reservations(cluster)
    (gang,) = kept.consider(
        [waiting("gang", members=2)],
        POLICY,
        lambda held, _: 1.0 if held.pod.uid == "both" else 99.0,
        now_s=0,
    )
    assert gang.nodes() == {"a"}
    end(cluster, kept, "run-0")
    assert sorted(len(seat.leaving) for seat in gang.seats) == [0, 1]
    end(cluster, kept, "both")
    with kept.own_room("gang"):
        assert isinstance(decide_gang(cluster, gang.waiting.pods, POLICY, 2), dict)
    assert isinstance(decide(cluster, whole("small"), POLICY), Placement)
    assert not isinstance(decide(cluster, whole("large", 2), POLICY), Placement)


def test_a_pod_that_must_be_beside_others_stays_where_its_room_was_chosen() -> None:
    cluster = full_cluster(1, 1)
    kept = Reservations(cluster)
    (made,) = kept.consider(
        [Waiting("w", (replace(whole("w"), different_card="g"),), 0)], POLICY, soon, now_s=0
    )
    (other,) = {"n0", "n1"} - made.nodes()
    assert end(cluster, kept, *uids_on(cluster, other)) == []
