"""Anything happens to a cluster, in any order, while room is kept for pods that wait for long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.scheduler.queue import LONGEST_BACK_OFF_S
from tests.scheduler import fairness
from tests.scheduler.living import Living, Template
from tests.scheduler.model_api import UNITS
from tests.scheduler.test_living_cluster import ACTIONS, Action, Machine, play

pytestmark = pytest.mark.usefixtures("short_patience")


class Keeping(Living):
    keeps_room = True


class KeepingMachine(Machine):
    backoffs = 8  # longer than pods usually wait here

    def __init__(self) -> None:
        super().__init__()
        self.living = Keeping()
        self.claimants = fairness.Claimants(told_s=self.backoffs * (LONGEST_BACK_OFF_S + 1) + 12)

    def begin(self, both: bool) -> None:
        """Every card is taken, and a pod waits that needs all cards of a node."""
        super().begin(both)
        for _ in range(4 if both else 2):
            self.living.add(Template(UNITS))
        self.living.add(Template(UNITS, cards=2))
        self.settle()
        assert len(self.living.state.kept_room) == 1

    def settle(self) -> None:
        """All that holds without kept room holds beside it."""
        super().settle()
        self._kept_room_is_right()

    def _kept_room_is_right(self) -> None:
        state = self.living.state
        kept = state.kept_room._reservations.all()
        uids = [seat.pod.uid for each in kept for seat in each.seats]
        assert len(uids) == len(set(uids))
        assert set(uids) == set(state.kept_room._key_of)
        assert set(uids) <= state.cluster.reserved
        assert set(uids) <= set(state.pending)
        assert not set(uids) & set(state.preemption_claims)
        assert state.cluster.reserved == {*uids, *state.preemption_claims}
        assert len(kept) <= 1  # of two nodes
        bound = {pod["metadata"]["uid"] for pod in self.living.bound().values()}
        assert set(state.kept_room._reservations._seat_of) <= bound

    def end(self) -> None:
        super().end()
        kept = self.living.state.kept_room
        assert not kept._key_of
        assert not kept._said
        assert not kept._began_s


@settings(max_examples=30, deadline=None)  # each of them goes through hundreds of rests
@given(st.booleans(), st.lists(ACTIONS, max_size=20))
def test_whatever_happens_kept_room_harms_nobody(both: bool, actions: list[Action]) -> None:
    play(both, actions, KeepingMachine)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=500, deadline=None)
@given(st.booleans(), st.lists(ACTIONS, min_size=10, max_size=40))
def test_whatever_happens_for_long_kept_room_harms_nobody(
    both: bool, actions: list[Action]
) -> None:
    play(both, actions, KeepingMachine)
