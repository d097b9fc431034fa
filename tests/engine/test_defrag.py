"""Plans that make room by moving pods: as few moves as possible, and every step is possible."""

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from gpupool.core.gpu import Allocation, CardShare, ContainerGpus, Isolation
from gpupool.core.pods import DisruptionBudget
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.defrag import NoPlan, Plan, Rules, larger_job, largest_job, room_for
from gpupool.engine.discrepancies import excesses_on
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Mix
from kubeclient.selectors import LabelSelector
from tests.engine.building import POLICY, cluster_of, gpu_node, shared, whole

SPREAD = POLICIES["spread"](Mix())  # takes the larger node first


def two_half_full(count: int = 4) -> ClusterModel:
    """Two nodes of four cards; each has a pod with one card, so no pod with four fits."""
    cluster = cluster_of(gpu_node("a", count), gpu_node("b", count))
    for name in ("a", "b"):
        pod = whole(f"on-{name}", started=f"2026-11-17T0{'ab'.index(name)}:00:00Z")
        found = decide(cluster_of(gpu_node(name, count)), pod, POLICY)
        assert isinstance(found, Placement)
        cluster.hold(pod, *found)
    return cluster


def test_one_pod_moves_and_the_younger_one_has_less_to_lose() -> None:
    cluster = two_half_full()
    plan = room_for(cluster, (whole("large", 4),), POLICY, Rules(3))
    assert isinstance(plan, Plan)
    (move,) = plan.moves
    assert (move.pod.uid, move.source, move.target.node) == ("on-b", "b", "a")
    assert plan.placements[0].node == "b"


def test_nothing_is_changed_by_planning() -> None:
    cluster = two_half_full()
    before = {held.pod.uid: (held.node, held.allocation) for held in cluster.holds()}
    room_for(cluster, (whole("large", 4),), POLICY, Rules(3))
    assert {held.pod.uid: (held.node, held.allocation) for held in cluster.holds()} == before


def test_what_fits_as_it_is_needs_no_moves() -> None:
    plan = room_for(two_half_full(), (whole("small", 3),), POLICY, Rules(3))
    assert isinstance(plan, Plan)
    assert plan.moves == ()


def test_pods_that_may_not_move_stay() -> None:
    rules = Rules(3, may_move=lambda held: held.pod.uid == "on-a")
    plan = room_for(two_half_full(), (whole("large", 4),), POLICY, rules)
    assert isinstance(plan, Plan)
    assert [move.pod.uid for move in plan.moves] == ["on-a"]
    assert room_for(
        two_half_full(), (whole("large", 4),), POLICY, Rules(3, may_move=lambda _: False)
    ) == NoPlan(0)


def test_a_disruption_budget_is_never_broken() -> None:
    rules = Rules(3, budgets=(DisruptionBudget("default", LabelSelector(()), 0),))
    assert room_for(two_half_full(), (whole("large", 4),), POLICY, rules) == NoPlan(0)


def test_several_pods_share_the_moves_that_are_allowed() -> None:
    cluster = two_half_full()
    cluster.set_node(gpu_node("c", 2))
    pods = (whole("one", 4), whole("two", 4))
    plan = room_for(cluster, pods, POLICY, Rules(2))
    assert isinstance(plan, Plan)
    assert {placement.node for placement in plan.placements} == {"a", "b"}
    assert room_for(cluster, pods, POLICY, Rules(1)) == NoPlan(1)


def test_the_largest_job_grows_by_moving_or_it_is_said_that_it_does_not() -> None:
    cluster = two_half_full()
    assert largest_job(cluster, POLICY) == 3
    found = larger_job(cluster, POLICY, Rules(3))
    assert found is not None
    assert found[0] == 4
    assert larger_job(cluster_of(gpu_node("a", 4)), POLICY, Rules(3)) is None


def test_shares_move_to_free_one_card_for_a_larger_share() -> None:
    cluster = cluster_of(gpu_node("a", 1), gpu_node("b", 1))
    for at, name in enumerate(("a", "b")):
        pod = shared(f"s{at}", 5)
        found = decide(cluster_of(gpu_node(name, 1)), pod, POLICY)
        assert isinstance(found, Placement)
        cluster.hold(pod, *found)
    plan = room_for(cluster, (shared("large", 15),), POLICY, Rules(1))
    assert isinstance(plan, Plan)
    assert len(plan.moves) == 1


Pods = list[tuple[int, int]]  # node and number of whole cards


def brute_force(nodes: list[int], pods: Pods, asked: int, most: int) -> int | None:
    """The fewest pods of one node that have to go to other nodes, by trying everything."""
    used = [sum(size for at, size in pods if at == node) for node in range(len(nodes))]
    best: int | None = None
    for node, cards in enumerate(nodes):
        here = [at for at, (where, _) in enumerate(pods) if where == node]
        for count in range(min(most, len(here)) + 1):
            for leaving in combinations(here, count):
                freed = sum(pods[at][1] for at in leaving)
                if cards - used[node] + freed < asked:
                    continue
                others = [other for other in range(len(nodes)) if other != node]
                for targets in product(others, repeat=count):
                    load = list(used)
                    for at, target in zip(leaving, targets, strict=True):
                        load[target] += pods[at][1]
                    if all(load[other] <= nodes[other] for other in others):
                        best = count if best is None else min(best, count)
    return best


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=6),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_plans_are_as_short_as_brute_force_finds_them(
    sizes: list[int], wishes: Pods, asked: int, most: int
) -> None:
    cluster = cluster_of(*(gpu_node(f"n{at}", size) for at, size in enumerate(sizes)))
    pods: Pods = []
    for number, (node, size) in enumerate(wishes):
        if node < len(sizes) and sum(s for n, s in pods if n == node) + size <= sizes[node]:
            alone = cluster_of(gpu_node(f"n{node}", sizes[node]))
            for held in list(cluster.holds()):
                if held.node == f"n{node}":
                    alone.hold(held.pod, held.node, held.allocation)
            found = decide(alone, whole(f"p{number}", size), POLICY)
            assert isinstance(found, Placement)
            cluster.hold(whole(f"p{number}", size), *found)
            pods.append((node, size))
    wanted = brute_force(sizes, pods, asked, most)
    pod = whole("asked", asked)
    plan = room_for(cluster, (pod,), POLICY, Rules(most))
    assert (len(plan.moves) if isinstance(plan, Plan) else None) == wanted
    if isinstance(plan, Plan):
        for move in plan.moves:
            cluster.release(move.pod.uid)
        cluster.hold(pod, *plan.placements[0])
        for move in plan.moves:
            cluster.hold(move.pod, *move.target)
        for index in cluster.all_nodes():
            assert not excesses_on(cluster.at(int(index)))


def test_several_moves_together_do_not_break_a_budget() -> None:
    cluster = two_half_full()
    cluster.set_node(gpu_node("c", 2))
    pods = (whole("one", 4), whole("two", 4))
    for allowed, wanted in ((1, NoPlan(1)), (2, Plan)):
        budgets = (DisruptionBudget("default", LabelSelector(()), allowed),)
        plan = room_for(cluster, pods, POLICY, Rules(5, budgets=budgets))
        assert plan == wanted if isinstance(wanted, NoPlan) else isinstance(plan, wanted)


def test_a_pod_with_two_budgets_stays_because_nobody_can_evict_it() -> None:
    budget = DisruptionBudget("default", LabelSelector(()), 9)
    rules = Rules(3, budgets=(budget, budget))
    assert room_for(two_half_full(), (whole("large", 4),), POLICY, rules) == NoPlan(0)


def test_nobody_moves_to_a_card_that_is_cordoned_for_another() -> None:
    """There would be room for it; but it waited beside the cordon, and the plan was never done."""
    cluster = cluster_of(gpu_node("a", 1), gpu_node("b", 1))
    for at, units in enumerate((2, 3)):
        found = decide(cluster, shared(f"p{at}", units), POLICY)
        assert isinstance(found, Placement)
        cluster.hold(shared(f"p{at}", units), *found)
    wanted = (shared("large", 13), shared("other", 11))
    assert room_for(cluster, wanted, POLICY, Rules(3)) == NoPlan(1)
    cluster.set_node(gpu_node("c", 1))
    cluster.hold(shared("full", 10), "c", one_card("c-0", 10))
    plan = room_for(cluster, wanted, POLICY, Rules(3))
    assert isinstance(plan, Plan)
    (move,) = plan.moves
    assert move.target.node not in {placement.node for placement in plan.placements}


def one_card(uuid: str, units: int) -> Allocation:
    share = CardShare(uuid, 0, units, units * 1024, 15)
    return Allocation((ContainerGpus("c", (share,), Isolation.LIMIT),))


def uuids(given: Allocation) -> set[str]:
    return {share.uuid for gpus in given.containers for share in gpus.shares}


UNITS = st.integers(1, 15)


@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=3),
    st.lists(st.tuples(UNITS, st.booleans()), min_size=1, max_size=12),
    st.lists(UNITS, min_size=1, max_size=3),
)
def test_pods_that_move_do_not_go_to_cards_that_are_cordoned_for_it(
    sizes: list[int], pods: list[tuple[int, bool]], asked: list[int]
) -> None:
    """Cards of the room that is made take nobody until all have moved."""
    cluster = cluster_of(*(gpu_node(f"n{at}", size) for at, size in enumerate(sizes)))
    for at, (units, _) in enumerate(pods):
        found = decide(cluster, shared(f"p{at}", units), POLICY)
        if isinstance(found, Placement):
            cluster.hold(shared(f"p{at}", units), *found)
    for at, (_, stays) in enumerate(pods):
        if not stays:
            cluster.release(f"p{at}")
    wanted = [shared(f"new{at}", units) for at, units in enumerate(asked)]
    plan = room_for(cluster, wanted, POLICY, Rules(6))
    if isinstance(plan, Plan) and plan.moves:
        cordoned = set().union(*(uuids(each.allocation) for each in plan.placements))
        assert all(cordoned.isdisjoint(uuids(move.target.allocation)) for move in plan.moves)
        for move in plan.moves:
            cluster.release(move.pod.uid)
        for pod, placement in zip(wanted, plan.placements, strict=True):
            cluster.hold(pod, *placement)
        for move in plan.moves:
            cluster.hold(move.pod, *move.target)
        for index in cluster.all_nodes():
            assert not excesses_on(cluster.at(int(index)))


def test_pods_that_room_is_made_for_are_not_moved() -> None:
    """They are not there yet. The second one fits only if the first one goes elsewhere."""
    cluster = cluster_of(gpu_node("a", 2), gpu_node("b", 1))
    first, second = whole("first"), whole("second", 2)
    found = room_for(cluster, (first, second), SPREAD, Rules(3))
    assert found == NoPlan(1)
