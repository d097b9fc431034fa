"""Anything happens to a cluster, in any order, while room is kept for pods that wait for long."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.scheduler.queue import LONGEST_BACK_OFF_S
from tests.scheduler import fairness
from tests.scheduler.living import Living, Template
from tests.scheduler.model_api import UNITS
from tests.scheduler.test_living_cluster import ACTIONS, GROW, MOST_PODS, Action, Machine


class Keeping(Living):
    keeps_room = True


class KeepingMachine(Machine):
    def __init__(self) -> None:
        super().__init__()
        self.living = Keeping()

    def begin(self, both: bool) -> None:
        """Every card is taken, and a pod waits that needs all cards of a node."""
        super().begin(both)
        for _ in range(4 if both else 2):
            self.living.add(Template(UNITS))
        self.living.add(Template(UNITS, cards=2))
        self.settle()
        assert len(self.living.state.kept_room) == 1

    def settle(self) -> None:
        living = self.living
        faults = bool(living.fates)
        living.tell()
        before = {name: dict(pod["metadata"]) for name, pod in living.bound().items()}
        self.run(living.rest())  # it comes to rest
        if not faults:
            self._groups_are_whole(before)
        living.end_reservations()
        for _ in range(8):  # longer than pods usually wait here
            living.now_s += LONGEST_BACK_OFF_S + 1
            self.run(living.rest())
        fairness.assert_no_card_is_over(living)
        fairness.assert_victims_are_pods(living)
        self._kept_room_is_right()
        for news in living.scheduler._reports._news.values():
            news.why()

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

    def an_extender_reserves_room(self, size: int, priority: int) -> None:
        self.living.reserve(size)
        self.settle()

    def the_leader_fails(self, late: bool) -> None:
        self.living.fail_over()
        self.settle()

    def end(self) -> None:
        super().end()
        kept = self.living.state.kept_room
        assert not kept._key_of
        assert not kept._said
        assert not kept._began_s


@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.lists(ACTIONS, max_size=20))
def test_whatever_happens_kept_room_harms_nobody(both: bool, actions: list[Action]) -> None:
    machine = KeepingMachine()
    try:
        machine.begin(both)
        for name, arguments in actions:
            if name not in GROW or len(machine.living.api.pods) < MOST_PODS:
                getattr(machine, name)(**arguments)
        machine.end()
    finally:
        machine.loop.close()
