"""The plans of DaemonSets: examples, and simulations of whole updates."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.controllers.daemon_set_plan import Daemon, Fit, Plan, tend, update

RUN, STAY, GO = Fit.RUN, Fit.STAY, Fit.GO
NOBODY: frozenset[str] = frozenset()


def new(name: str = "new") -> Daemon:
    return Daemon(name, created="2")


def old(name: str = "old") -> Daemon:
    return Daemon(name, updated=False, created="1")


def broken(daemon: Daemon) -> Daemon:
    return replace(daemon, ready=False, available=False)


def look(fit: Fit, *daemons: Daemon, surges: bool = False) -> Plan:
    return tend({"n": fit}, {"n": daemons} if daemons else {}, surges, NOBODY)


def test_a_node_that_suits_gets_one_pod() -> None:
    assert look(RUN).create == ["n"]
    assert look(RUN, new()) == Plan()
    assert look(STAY) == Plan()
    assert look(GO) == Plan()


def test_a_pod_may_stay_on_a_node_that_gets_no_new_one() -> None:
    assert look(STAY, new()) == Plan()
    assert look(GO, new()).delete == ["new"]


def test_of_several_pods_on_a_node_the_first_stays() -> None:
    waiting = replace(new("waiting"), placed=False, created="0")
    assert look(RUN, new("b"), new("a"), waiting).delete == ["b", "waiting"]


def test_a_pod_that_has_ended_is_deleted_with_an_event() -> None:
    assert look(RUN, replace(new(), phase="Failed")) == Plan(delete=["new"], failed=[("n", "new")])
    ended = look(RUN, replace(new(), phase="Succeeded"))
    assert ended == Plan(delete=["new"], succeeded=[("n", "new")])


def test_a_failed_pod_stays_while_its_node_is_held() -> None:
    failed = replace(new(), phase="Failed")
    assert tend({"n": RUN}, {"n": [failed]}, False, {"n"}) == Plan()


def test_a_pending_pod_for_a_deleted_node_is_deleted() -> None:
    waiting = replace(new("waiting"), placed=False)
    assert tend({}, {"gone": [waiting, new("placed")]}, False, NOBODY).delete == ["waiting"]


def test_no_pod_is_created_while_its_predecessor_terminates() -> None:
    assert look(RUN, replace(new(), terminating=True)) == Plan()
    assert look(RUN, replace(new(), terminating=True), surges=True).create == ["n"]


def test_a_surge_ends_when_the_new_pod_is_available_or_the_old_one_not_ready() -> None:
    assert look(RUN, old(), broken(new()), surges=True) == Plan()
    assert look(RUN, old(), new(), surges=True).delete == ["old"]
    assert look(RUN, broken(old()), broken(new()), surges=True).delete == ["old"]


def test_an_update_removes_as_many_old_pods_as_may_be_missing() -> None:
    fits = dict.fromkeys("abc", RUN)
    daemons = {node: [old(node)] for node in "abc"}
    assert update(fits, daemons, 0, 2).delete == ["a", "b"]
    daemons["a"] = [broken(new("a"))]
    assert update(fits, daemons, 0, 2).delete == ["b"]
    assert update(fits, daemons, 0, 1).delete == []


def test_an_old_pod_that_is_not_available_is_deleted_at_once() -> None:
    fits = dict.fromkeys("ab", RUN)
    daemons = {"a": [broken(new("a"))], "b": [broken(old("b"))]}
    assert update(fits, daemons, 0, 1).delete == ["b"]


def test_a_surge_makes_new_pods_beside_the_old() -> None:
    fits = dict.fromkeys("abc", RUN)
    daemons = {node: [old(node)] for node in "abc"}
    assert update(fits, daemons, 2, 0).create == ["a", "b"]
    daemons["a"].append(broken(new("a2")))
    assert update(fits, daemons, 2, 0).create == ["b"]
    daemons["b"] = [broken(old("b"))]
    assert update(fits, daemons, 1, 0).create == ["b"]


def test_an_old_pod_on_a_node_that_no_longer_suits_goes_when_others_serve() -> None:
    fits = {"a": STAY, "b": RUN}
    assert update(fits, {"a": [old("a")], "b": [broken(new("b"))]}, 1, 0).delete == []
    assert update(fits, {"a": [old("a")], "b": [new("b")]}, 1, 0).delete == ["a"]


class World:
    """Simulated nodes and pods; their kubelets act in random order."""

    def __init__(self, fits: dict[str, Fit], daemons: dict[str, list[Daemon]]) -> None:
        self.fits = fits
        self.daemons = daemons
        self.serial = 0

    def act(self, surge: int, missing: int) -> bool:
        todo = tend(self.fits, self._found(), surge > 0, NOBODY)
        if not (todo.create or todo.delete):
            todo = update(self.fits, self._found(), surge, missing)
        for node in todo.create:
            self.serial += 1
            made = Daemon(f"new-{self.serial}", phase="Pending", created=f"2{self.serial:03}")
            self.daemons.setdefault(node, []).append(broken(made))
        for node, found in self.daemons.items():
            self.daemons[node] = [
                replace(d, terminating=True) if d.name in todo.delete else d for d in found
            ]
        return bool(todo.create or todo.delete)

    def _found(self) -> dict[str, list[Daemon]]:
        return {node: found for node, found in self.daemons.items() if found}

    def move(self, order: random.Random) -> bool:
        moves = [
            (node, daemon)
            for node, found in self.daemons.items()
            for daemon in found
            if daemon.terminating or daemon.phase == "Pending"
        ]
        if not moves:
            return False
        node, daemon = order.choice(moves)
        self.daemons[node].remove(daemon)
        if not daemon.terminating:
            running = replace(daemon, phase="Running", ready=True, available=True)
            self.daemons[node].append(running)
        return True

    def rounds(self, surge: int, missing: int, order: random.Random) -> Iterator[None]:
        for _ in range(200):
            acted = self.act(surge, missing)
            yield
            if not self.move(order) and not acted:
                return
        pytest.fail("the update never ends")

    def available(self) -> int:
        return sum(
            any(d.available and not d.terminating for d in self.daemons.get(node, ()))
            for node, fit in self.fits.items()
            if fit is RUN
        )


orders = st.integers(0, 9).map(random.Random)
node_states = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(
        st.sampled_from([RUN, STAY, GO]),
        st.lists(st.sampled_from([new("x"), old("y"), broken(old("z"))]), max_size=2, unique=True),
    ),
)


@given(node_states, st.integers(0, 2), st.integers(0, 2), orders)
def test_every_update_ends_with_one_new_pod_on_every_node_that_suits(
    states: dict[str, tuple[Fit, list[Daemon]]], surge: int, missing: int, order: random.Random
) -> None:
    daemons = {
        node: [replace(d, name=f"{node}{d.name}") for d in found]
        for node, (_, found) in states.items()
    }
    world = World({node: fit for node, (fit, _) in states.items()}, daemons)
    for _ in world.rounds(surge, missing, order):
        pass
    for node, fit in world.fits.items():
        found = world.daemons.get(node, [])
        if fit is RUN:
            assert [daemon.updated for daemon in found] == [True]
        elif fit is GO:
            assert not found


@given(st.integers(1, 4), st.integers(0, 2), st.integers(0, 2), orders)
def test_an_update_never_exceeds_the_unavailable_daemons_that_are_allowed(
    count: int, surge: int, missing: int, order: random.Random
) -> None:
    names = "abcd"[:count]
    world = World(dict.fromkeys(names, RUN), {node: [old(f"{node}y")] for node in names})
    allowed = 0 if surge else max(1, missing)
    for _ in world.rounds(surge, missing, order):
        assert world.available() >= count - allowed
        extra = sum(max(0, sum(not d.terminating for d in f) - 1) for f in world.daemons.values())
        assert extra <= surge
