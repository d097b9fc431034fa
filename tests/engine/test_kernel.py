"""The compiled kernel and its twins in Python: the same numbers, and the same decisions."""

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.engine import kernel
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.kernel import (
    FIRST_ROWS,
    LIBRARY,
    CompiledCuts,
    Library,
    likely_by,
    spare_by,
    view_of,
    worth_by,
)
from gpupool.engine.last_places import room_of
from gpupool.engine.packing import Packing
from gpupool.engine.policies import cutting, scarcity
from gpupool.engine.policies.cutting import NEARLY, Cuts
from gpupool.engine.policies.places import MOST_CARDS, Place
from gpupool.engine.policies.scarcity import (
    _prices_by,
    likely_of,
    prices_for,
    spare_of,
    worth_of,
)
from gpupool.engine.supply import free_of, machines_of
from gpupool.replay import run
from gpupool.replay.arrivals import Arrivals, churn
from gpupool.replay.run import Decision, replay
from gpupool.replay.synthetic import synthetic_trace
from gpupool.replay.trace import Trace
from tests.engine.building import cards, cluster_of, gpu_node, shared, whole

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native parts: `make native`")


@pytest.fixture
def library() -> Library:
    assert LIBRARY is not None
    return LIBRARY


def without_kernel(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cutting, "LIBRARY", None)
    patch.setattr(scarcity, "LIBRARY", None)
    patch.setattr(run, "ClusterModel", partial(ClusterModel, False))


def decisions(trace: Trace, arrivals: Arrivals, policy: str) -> Sequence[Decision]:
    return replay(trace, arrivals, policy, lambda done: None).decisions


@pytest.mark.parametrize(("policy", "seed"), [("residue", 1), ("residue", 2), ("fgd", 1)])
def test_a_whole_replay_gives_the_same_placements_without_the_kernel(
    monkeypatch: pytest.MonkeyPatch, policy: str, seed: int
) -> None:
    trace = synthetic_trace(30)
    arrivals = churn(trace, 1.0, seed)
    arrivals = replace(arrivals, order=arrivals.order[: 1500 if policy == "residue" else 500])
    compiled = decisions(trace, arrivals, policy)
    without_kernel(monkeypatch)
    assert decisions(trace, arrivals, policy) == compiled
    assert any(decision.node for decision in compiled)


reals = st.floats(-1e6, 1e6)


@given(data=st.data(), sets=st.integers(1, 12), sizes=st.integers(1, 4))
@settings(deadline=None)
def test_what_is_to_spare_is_the_same(data: st.DataObject, sets: int, sizes: int) -> None:
    assert LIBRARY is not None
    count = sets * sizes
    coming, there_is, variance = (
        np.array(data.draw(st.lists(values, min_size=count, max_size=count))).reshape(sets, sizes)
        for values in (reals, st.integers(0, 10**6).map(float), st.floats(0, 1e6))
    )
    bits = data.draw(st.lists(st.booleans(), min_size=sets**2, max_size=sets**2))
    inside = np.array(bits).reshape(sets, sets) | np.eye(sets, dtype=np.bool_)
    expected = spare_of(inside, there_is, coming.copy(), variance.copy())
    found = spare_by(LIBRARY, inside, there_is, coming.copy(), variance.copy())
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-3)


@given(data=st.data(), sets=st.integers(1, 12), sizes=st.integers(1, 4), classes=st.integers(1, 5))
@settings(deadline=None)
def test_what_will_be_missed_is_the_same_to_the_last_bit(
    data: st.DataObject, sets: int, sizes: int, classes: int
) -> None:
    assert LIBRARY is not None
    count = sets * sizes
    spare, spread = (
        np.array(data.draw(st.lists(values, min_size=count, max_size=count))).reshape(sets, sizes)
        for values in (st.floats(-1e3, 1e3), st.one_of(st.just(0.0), st.floats(1e-3, 1e3)))
    )
    bits = data.draw(st.lists(st.booleans(), min_size=sets * classes, max_size=sets * classes))
    has = np.array(bits).reshape(sets, classes)
    assert likely_by(LIBRARY, has, spare, spread).tolist() == likely_of(has, spare, spread).tolist()


@given(
    likely=st.lists(st.lists(st.integers(0, 1000), min_size=3, max_size=3), min_size=1, max_size=5),
    cards=st.integers(1, 12),
    milli=st.integers(1, 12_000),
)
@settings(deadline=None)
def test_prices_are_the_same_to_the_last_bit(
    likely: list[list[int]], cards: int, milli: int
) -> None:
    assert LIBRARY is not None
    risk, sizes, machines = np.array(likely) / 1000, (1, 3, 8), [8, 4, 2, 8, 16][: len(likely)]
    worth, single = worth_of(risk, sizes, machines), np.rint(risk[:, 0] * 1000).astype(np.int64)
    compiled = worth_by(LIBRARY, risk, sizes, machines, MOST_CARDS)
    assert compiled.tolist() == worth.tolist()
    addresses = (compiled.ctypes.data, single.ctypes.data)
    expected = prices_for(worth, single, cards, milli)
    found = _prices_by(LIBRARY, compiled, single, addresses, cards, milli)
    assert found.values.tolist() == expected.values.tolist()


@given(
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    steps=st.integers(1, 40),
    data=st.data(),
)
@settings(deadline=None)
def test_cuts_are_the_same_to_the_last_bit(
    cuts: list[int], steps: int, data: st.DataObject
) -> None:
    assert LIBRARY is not None
    values = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(cuts), max_size=len(cuts))))
    plain, compiled = Cuts(cuts, steps), CompiledCuts(LIBRARY, cuts, steps, NEARLY)
    for search in (plain, compiled):
        search.values[:] = values
    for mine, theirs in zip(compiled.best(), plain.best(), strict=True):
        assert mine.tolist() == theirs.tolist()


places = st.builds(
    Place, st.integers(2, 8), st.sampled_from([0, 1, 9_000, 32_000, 2**62]), st.integers(0, 900)
)
hosts = st.tuples(
    st.integers(0, 9), st.sampled_from([0, 8_999, 9_000, 64_000, 2**63]), st.integers(0, 2**31)
)


@given(
    nodes=st.lists(hosts, min_size=1, max_size=20),
    wanted=st.lists(st.lists(places, min_size=40, max_size=40), max_size=3),
)
@settings(deadline=None)
def test_free_places_are_the_same_with_and_without_the_kernel_and_by_the_rule_for_one_node(
    nodes: list[tuple[int, int, int]], wanted: list[list[Place]]
) -> None:
    """`wanted`: for each size by class of machines."""
    found, rooms = [], []
    for compiled in (True, False):
        cluster, packing = ClusterModel(compiled), Packing("residue")
        for at, (count, cpu, memory) in enumerate([(1, 0, 0), *nodes]):
            offered = {"cpu": cpu, "memory": memory, "pods": 9}
            cluster.set_node(gpu_node(f"n{at}", count, allocatable=offered))
        for at in range(40):
            packing.count(cluster, whole(f"u{at}", resources={"cpu": 9_000 if at % 2 else 0}))
        machines = machines_of(cluster)
        classes = range(len(machines.cards))
        by_class = [(Place(1), *(of_size[at] for of_size in wanted)) for at in classes]
        found.append(free_of(cluster, packing.policy, machines, by_class).tolist())
        states = [cluster.at(int(node)) for node in cluster.all_nodes()]
        rooms = [
            (int(cluster.columns.machine[state.index]), room_of(cluster.columns, state))
            for state in states
            if state.cards
        ]
    compiled_too, by_numpy = found
    assert compiled_too == by_numpy
    for machine in classes:
        for at, of_size in enumerate(wanted, 1):
            here = [room.places(of_size[machine]) for of, room in rooms if of == machine]
            assert by_numpy[machine][at] == sum(here)


@given(
    sizes=st.lists(st.sampled_from([8_192, 16_384, 40_960]), min_size=1, max_size=3),
    shares=st.lists(st.integers(1, 16), min_size=32, max_size=60),
    larger=st.booleans(),
)
@settings(deadline=None)
def test_the_best_card_for_a_share_is_the_same(
    sizes: list[int], shares: list[int], larger: bool
) -> None:
    chosen = []
    for compiled in (True, False):
        cluster, packing = ClusterModel(compiled), Packing("residue")
        for at, mib in enumerate(sizes):
            cluster.set_node(gpu_node(f"n{at}", inventory=cards(f"n{at}", 5, mib)))
        for at, units in enumerate(shares):
            pod = shared(f"u{at}", units)
            packing.count(cluster, pod)
            found = decide(cluster, pod, packing.policy)
            if isinstance(found, Placement):
                cluster.hold(pod, found.node, found.allocation)
            chosen.append((compiled, found if isinstance(found, Placement) else None))
        if larger:  # than any card that the mix knows
            node = gpu_node("z", inventory=cards("z", 3, 163_840))
            cluster.set_node(node)
            found = decide(cluster, shared("last", 2, node_name="z"), packing.policy)
            chosen.append((compiled, found if isinstance(found, Placement) else None))
    of_kernel, of_python = (
        [each for is_, each in chosen if is_ is which] for which in (True, False)
    )
    assert of_kernel == of_python


def test_the_structures_are_as_large_as_those_of_the_library(library: Library) -> None:
    sizes = [ctypes.sizeof(kind) for kind in (kernel.ColumnsView, kernel.ResidueView)]
    assert [library.size_of(0), library.size_of(1)] == sizes
    assert library.size_of(2) == ctypes.sizeof(kernel.ShapeView)
    assert library.size_of(3) == ctypes.sizeof(kernel.TypicalView)


def test_a_library_of_another_layout_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel._load() is not None
    monkeypatch.setattr(kernel, "LAYOUT", kernel.LAYOUT + 1)
    assert kernel._load() is None


def test_a_machine_without_a_library_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    assert kernel._load() is None


def test_a_node_with_too_many_cards_for_the_kernel_is_left_to_numpy() -> None:
    cluster, packing = cluster_of(gpu_node("a", 8)), Packing("residue")
    for number in range(40):
        packing.count(cluster, shared(f"u{number}", 3))
    pod = shared("u", 3)
    assert isinstance(decide(cluster, pod, packing.policy), Placement)
    assert view_of(cluster.columns) is not None
    cluster.set_node(gpu_node("b", kernel.MOST_ROWS + 1))
    assert isinstance(decide(cluster, pod, packing.policy), Placement)
    assert view_of(cluster.columns) is None


def test_what_a_node_has_stays_side_by_side_when_columns_grow() -> None:
    more = {"example.com/more": 1}
    columns = cluster_of(
        *(gpu_node(f"n{each}", count=1 + each % 12) for each in range(200)),
        gpu_node("other", allocatable=more),
    ).columns
    assert len(columns.free) > FIRST_ROWS
    for each in vars(columns).values():
        if isinstance(each, np.ndarray):
            assert each.flags.f_contiguous
