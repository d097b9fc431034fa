"""Anything happens to a cluster, in any order. When the scheduler rests, everything is right again.

Each step is one change. Then the scheduler works until it rests, with its clock stopped, and once
more after the time of the longest backoff: before parked pods are tried again anyway.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.contract.pods import pod_request
from gpupool.scheduler.groups import group_of
from gpupool.scheduler.queue import LONGEST_BACK_OFF_S
from kubeclient.objects import Obj
from tests.scheduler import fairness
from tests.scheduler.living import FITS_NOWHERE, UNREACHABLE, Living, Template, make_absurd
from tests.scheduler.model_api import UNITS, Fate

NODES = ("m", "n")
GROUPS = ("g", "h")
MOST_PODS = 14
NODE_CHANGES = ("good", "good", "ill", "gone", "cordoned", "unreachable", "absurd")
ANTI_AFFINITY = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "a"}},
                    "namespaceSelector": {"matchLabels": {"team": "x"}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
}
CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
DEVICE_CLAIM = {"resourceClaims": [{"name": "r"}]}
NEVER = {"preemptionPolicy": "Never"}
SPECS: tuple[dict[str, Any], ...] = ({}, {}, {}, ANTI_AFFINITY, CLAIM, DEVICE_CLAIM, NEVER)

units = st.integers(1, UNITS)
priorities = st.sampled_from((0, 0, 5, 10))
nodes = st.sampled_from(NODES)
numbers = st.integers(0, 30)


TEMPLATES = st.builds(
    Template,
    units,
    priorities,
    cards=st.sampled_from((1, 1, 1, 2)),
    namespace=st.sampled_from(("default", "default", "other")),
    app=st.sampled_from(("a", "b")),
    spec=st.sampled_from(SPECS),
    grace_s=st.sampled_from((30, 600)),
)


class Machine:
    backoffs = 4  # that pass after each change

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.living = Living()
        self.claimants = fairness.Claimants()
        self.had_faults = False

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(work)

    def begin(self, both: bool) -> None:
        self.living.set_namespace("default", {})
        self.living.set_namespace("other", {})
        for name in NODES if both else NODES[:1]:
            self.living.api.set_node(name, ill=False)
        self.settle()

    # -- after every change --------------------------------------------------------------------

    def settle(self) -> None:
        living = self.living
        self.had_faults = bool(living.fates)
        living.tell()
        claims = self.claimants.look(living)
        before = {name: dict(pod["metadata"]) for name, pod in living.bound().items()}
        self.run(living.rest())
        fairness.assert_work_is_bounded(living)
        fairness.assert_victims_are_pods(living)
        self.claimants.assert_kept(
            living, claims, {metadata["uid"] for metadata in before.values()}
        )
        if not self.had_faults:
            self._groups_are_whole(before)
        self.run(living.rest())
        assert living.work.tries == 0, "there was something left to do"
        living.end_reservations()
        for _ in range(self.backoffs):
            living.now_s += LONGEST_BACK_OFF_S + 1
            self.run(living.rest())
            fairness.assert_work_is_bounded(living)
        self.claimants.note(living)
        fairness.assert_no_card_is_over(living)
        fairness.assert_nobody_starves(living)
        for news in living.scheduler._reports._news.values():
            news.why()

    def _groups_are_whole(self, before: dict[str, Obj]) -> None:
        """Whoever was started now belongs to a group of which enough members run."""
        bound = self.living.bound()
        for name, pod in bound.items():
            group = group_of(pod["metadata"])
            if name in before or group is None or isinstance(group, str):
                continue
            if not pod["metadata"].get("annotations"):  # another scheduler has bound it
                continue
            members = [
                other
                for other, each in bound.items()
                if group_of(each["metadata"]) is not None
                and "deletionTimestamp" not in before.get(other, {})
                and group_of(each["metadata"])[:2] == group[:2]  # type: ignore[index]
            ]
            assert len(members) >= group.least, f"{name} was started with {members}"

    # -- pods ----------------------------------------------------------------------------------

    def pods_come(self, template: Template, count: int) -> None:
        for _ in range(count):
            self.living.add(template)
        self.settle()

    def members_come(
        self, group: str, least: int, sizes: list[int], priority: int, spec: dict[str, Any]
    ) -> None:
        """One unit more than a card has: such a member fits nowhere."""
        for size in sizes:
            self.living.add(Template(size, priority, group=(group, least), spec=spec))
        self.settle()

    def a_crowd_that_fits_nowhere_comes(self) -> None:
        for _ in range(10):
            self.living.add(Template(1, cards=FITS_NOWHERE))
        self.settle()

    def _chosen(self, number: int, *, bound: bool | None = None) -> str | None:
        pods = self.living.api.pods
        found = [n for n, p in pods.items() if bound in (None, bool(p["spec"].get("nodeName")))]
        return sorted(found)[number % len(found)] if found else None

    def a_pod_goes(self, number: int) -> None:
        name = self._chosen(number)
        if name is not None:
            self.living.api.delete_pod(name)
            self.settle()

    def a_pod_is_being_deleted(self, number: int) -> None:
        """By somebody else; finalizers may keep it for long."""
        name = self._chosen(number)
        if name is not None:
            self.living.api.terminate_pod(name)
            self.settle()

    def what_terminates_has_gone(self, number: int, one: bool) -> None:
        pods = self.living.api.pods
        found = sorted(n for n, pod in pods.items() if "deletionTimestamp" in pod["metadata"])
        for name in found[number % len(found) :][:1] if one and found else found:
            self.living.api.delete_pod(name)
        self.settle()

    def a_pod_ends(self, number: int, phase: str) -> None:
        name = self._chosen(number, bound=True)
        if name is not None:
            self.living.api.finish_pod(name, phase)
            self.settle()

    def a_webhook_protects_a_pod(self, number: int, protect: bool) -> None:
        name = self._chosen(number, bound=True)
        if name is not None and protect:
            self.living.api.protected.add(name)
        else:
            self.living.api.protected.clear()
        self.settle()

    # -- cards that cannot be read -------------------------------------------------------------

    def an_allocation_is_of_a_newer_version(self, number: int, devices: bool) -> None:
        name = self._chosen(number, bound=True)
        if name is not None:
            self.living.spoil(name, devices=devices)
            self.settle()

    def an_allocation_can_be_read_again(self, number: int) -> None:
        name = self._chosen(number, bound=True)
        if name is not None:
            self.living.mend(name)
            self.settle()

    def another_scheduler_binds_a_pod(self, size: int, node: str) -> None:
        self.living.bind_elsewhere(size, node)
        self.settle()

    # -- nodes and the rest of the cluster -----------------------------------------------------

    def a_node_changes(self, name: str, change: str) -> None:
        api = self.living.api
        if change in ("good", "ill") or name not in api.nodes:
            api.set_node(name, ill=change == "ill")
        elif change == "gone":
            api.remove_node(name)
        elif change == "cordoned":
            api.set_spec("nodes", name, unschedulable=True)
        elif change == "unreachable":
            api.set_spec("nodes", name, taints=[UNREACHABLE])
        else:
            make_absurd(self.living, name)
        self.settle()

    def a_namespace_is_labelled(self, name: str, team: str) -> None:
        self.living.set_namespace(name, {"team": team})
        self.settle()

    def a_volume_is_bound(self, node: str) -> None:
        self.living.bind_claim("data", node)
        self.settle()

    def an_extender_reserves_room(self, size: int, priority: int) -> None:
        """For seconds. A pod comes at the same time. Nobody leaves if it fits after that."""
        living = self.living
        living.tell()
        alone, before = not fairness.pending(living), fairness.victims(living)
        name = living.add(Template(UNITS, priority))
        fits = fairness.fits_somewhere(
            fairness.world_of(living), pod_request(living.api.pods[name])
        )
        living.reserve(size)
        self.settle()
        if alone and fits:
            assert fairness.victims(living) <= before, "evicted because of a reservation"

    # -- the scheduler's own troubles ----------------------------------------------------------

    def time_passes(self, seconds: int) -> None:
        self.living.now_s += seconds
        self.settle()

    def answers_are_lost(self, fates: list[Fate], size: int) -> None:
        self.living.fates.extend(fates)
        if len(self.living.api.pods) < MOST_PODS:
            self.living.add(Template(size, 10))
        self.settle()

    def the_leader_fails(self, late: bool) -> None:
        """The new one sees what the old one saw, and has nothing to do.

        `late`: until it is there, what terminates has gone.
        """
        living = self.living
        if late:
            for name, pod in list(living.api.pods.items()):
                if "deletionTimestamp" in pod["metadata"]:
                    living.api.delete_pod(name)
            living.fail_over()
            self.settle()
            return
        places = dict(living.state.ledger.assignments())
        is_certain = living.state.ledger.is_settled()
        # A new leader learns anew for whom to keep room, and where (decision 35).
        knows_all = not living.state.kept_room and not living.state.spared.now(living.now_s)
        idle = is_certain and knows_all
        living.fail_over()
        if is_certain:
            assert dict(living.state.ledger.assignments()) == places
        before = {name: "deletionTimestamp" in p["metadata"] for name, p in living.bound().items()}
        self.settle()
        if idle and not living.api.protected:
            after = {n: "deletionTimestamp" in p["metadata"] for n, p in living.bound().items()}
            assert after == before

    def end(self) -> None:
        living = self.living
        for name in list(living.api.pods):
            living.api.delete_pod(name)
        living.now_s += 1000
        self.run(living.rest())
        fairness.assert_nothing_is_left(living)


ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "pods_come": {"template": TEMPLATES, "count": st.integers(1, 3)},
    "members_come": {
        "group": st.sampled_from(GROUPS),
        "least": st.integers(1, 3),
        "sizes": st.lists(st.integers(1, UNITS + 1), min_size=1, max_size=3),
        "priority": priorities,
        "spec": st.sampled_from(({}, {}, DEVICE_CLAIM)),
    },
    "a_crowd_that_fits_nowhere_comes": {},
    "a_pod_goes": {"number": numbers},
    "a_pod_is_being_deleted": {"number": numbers},
    "what_terminates_has_gone": {"number": numbers, "one": st.booleans()},
    "a_pod_ends": {"number": numbers, "phase": st.sampled_from(("Succeeded", "Failed"))},
    "a_webhook_protects_a_pod": {"number": numbers, "protect": st.booleans()},
    "an_allocation_is_of_a_newer_version": {"number": numbers, "devices": st.booleans()},
    "an_allocation_can_be_read_again": {"number": numbers},
    "another_scheduler_binds_a_pod": {"size": units, "node": nodes},
    "a_node_changes": {"name": nodes, "change": st.sampled_from(NODE_CHANGES)},
    "a_namespace_is_labelled": {
        "name": st.sampled_from(("default", "other")),
        "team": st.sampled_from(("x", "y")),
    },
    "a_volume_is_bound": {"node": nodes},
    "an_extender_reserves_room": {"size": units, "priority": priorities},
    "time_passes": {"seconds": st.sampled_from((60, 400, 1000))},
    "answers_are_lost": {
        "fates": st.lists(st.sampled_from(list(Fate)), min_size=1, max_size=3),
        "size": units,
    },
    "the_leader_fails": {"late": st.booleans()},
}
GROW = ("pods_come", "members_come", "a_crowd_that_fits_nowhere_comes", "an_extender_reserves_room")
Action = tuple[str, dict[str, Any]]
# What makes a cluster full comes more often than what changes it.
ACTIONS = st.sampled_from((*ARGUMENTS, *GROW[:2], *GROW[:2], "a_node_changes")).flatmap(
    lambda name: st.tuples(st.just(name), st.fixed_dictionaries(ARGUMENTS[name]))
)


def play(both: bool, actions: list[Action], kind: Callable[[], Machine] = Machine) -> None:
    machine = kind()
    try:
        machine.begin(both)
        for name, arguments in actions:
            if name not in GROW or len(machine.living.api.pods) < MOST_PODS:
                getattr(machine, name)(**arguments)
        machine.end()
    finally:
        machine.loop.close()


@settings(max_examples=100, deadline=None)
@given(st.booleans(), st.lists(ACTIONS, max_size=20))
def test_whatever_happens_everything_is_right_when_the_scheduler_rests(
    both: bool, actions: list[Action]
) -> None:
    play(both, actions)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=1000, deadline=None)
@given(st.booleans(), st.lists(ACTIONS, min_size=10, max_size=40))
def test_whatever_happens_for_long_everything_is_right_when_the_scheduler_rests(
    both: bool, actions: list[Action]
) -> None:
    play(both, actions)
