"""Random sequences of nodes, holds, releases and decisions, against the rules in plain Python."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gpupool.core.gpu import Allocation
from gpupool.core.pods import PodRequest
from gpupool.engine.candidates import candidates
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, Unschedulable, decide
from gpupool.engine.discrepancies import excesses
from gpupool.engine.explain import explain
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.policy import Ask
from gpupool.engine.preempt import Preemption, preempt
from tests.engine import naive, samples

_MIX = Mix((Demand(Ask(1, 2, 0, 1, 0), (), 3), Demand(Ask(2, 0, 0, 2, 0), (), 1)), (4, 4), (2, 4))
POLICY = {name: make(Mix()) for name, make in POLICIES.items()}
POLICY["residue that has learned"] = POLICIES["residue"](_MIX)
policies = st.sampled_from(sorted(POLICY))


class Rules(RuleBasedStateMachine):
    """One theme for each run, so that the tested constraint decides."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = ClusterModel()
        self.world = naive.World()
        self.meddled = False  # whether something was held without a decision
        self.theme = ""

    @initialize(data=st.data(), theme=st.sampled_from(sorted(samples.THEMES)))
    def begin(self, data: st.DataObject, theme: str) -> None:
        self.theme = theme
        for _ in range(3):
            self.set_node(data)

    @rule(data=st.data())
    def set_node(self, data: st.DataObject) -> None:
        node = data.draw(samples.themed_nodes(self.theme))
        known = self.world.nodes.get(node.name)
        self.meddled |= known is not None and known != node
        self.cluster.set_node(node)
        self.world.nodes[node.name] = node

    @rule(name=st.sampled_from(samples.NODE_NAMES))
    def remove_node(self, name: str) -> None:
        self.meddled |= any(where == name for _, where, _ in self.world.held.values())
        self.cluster.remove_node(name)
        self.world.nodes.pop(name, None)

    @rule(labels=st.sampled_from(({}, {"team": "1"}, None)))
    def set_namespace(self, labels: dict[str, str] | None) -> None:
        self.cluster.set_namespace("other", labels)
        self.world.namespaces["other"] = labels or {}

    @rule(data=st.data(), policy=policies)
    def schedule_one(self, data: st.DataObject, policy: str) -> None:
        self.schedule(data.draw(samples.pods(self.theme)), policy)

    @rule(data=st.data(), policy=policies)
    def schedule_several(self, data: st.DataObject, policy: str) -> None:
        for uid in samples.UIDS[:4]:
            self.schedule(data.draw(samples.pods(self.theme, uid)), policy)

    def schedule(self, pod: PodRequest, policy: str) -> None:
        self.release(pod.uid)
        decision = decide(self.cluster, pod, POLICY[policy])
        fitting = {n for n, node in self.world.nodes.items() if naive.fits(self.world, pod, node)}
        found = candidates(self.cluster, pod, POLICY[policy], list(self.world.nodes))
        assert set(found.fitting()) == fitting
        match decision:
            case Placement():
                assert decision.node in fitting
                node = self.world.nodes[decision.node]
                assert not naive.complaints(self.world, pod, node, decision.allocation)
                self._hold(pod, decision.node, decision.allocation)
            case Unschedulable():
                assert not fitting
                self._explained(pod, decision.message)

    def _explained(self, pod: PodRequest, message: str) -> None:
        found = explain(self.cluster, pod)
        assert found.message == message
        assert {each.node for each in found.nodes} == set(self.world.nodes)
        assert all(each.reasons for each in found.nodes)

    def _hold(self, pod: PodRequest, node: str, allocation: Allocation) -> None:
        self.cluster.hold(pod, node, allocation)
        self.world.held[pod.uid] = (pod, node, allocation)

    @rule(uid=st.sampled_from(samples.UIDS))
    def release(self, uid: str) -> None:
        assert self.cluster.release(uid) == (uid in self.world.held)
        self.world.held.pop(uid, None)

    @rule(data=st.data(), node=st.sampled_from(samples.NODE_NAMES))
    def held_by_another_scheduler(self, data: st.DataObject, node: str) -> None:
        self.meddled = True
        allocation = Allocation(unread=data.draw(samples.unread(node)))
        self._hold(data.draw(samples.pods(self.theme)), node, allocation)

    @rule(data=st.data())
    def make_room(self, data: st.DataObject) -> None:
        pod = data.draw(samples.pods(self.theme, "high"))
        if any(naive.fits(self.world, pod, node) for node in self.world.nodes.values()):
            return
        found = preempt(self.cluster, pod, POLICY["best-fit"])
        if not isinstance(found, Preemption):
            return
        assert found.victims
        for uid in found.victims:
            victim, where, _ = self.world.held[uid]
            assert where == found.node
            assert victim.priority < pod.priority
        left = naive.World(
            self.world.nodes,
            {uid: held for uid, held in self.world.held.items() if uid not in found.victims},
            self.world.namespaces,
        )
        assert naive.fits(left, pod, self.world.nodes[found.node])

    @invariant()
    def nothing_is_given_out_twice(self) -> None:
        if self.meddled:
            return
        assert not excesses(self.cluster)
        for node in self.world.nodes.values():
            for card in node.inventory.cards if node.inventory else ():
                units, percent, whole = naive.card_use(self.world, node, card)
                assert percent <= 100
                assert units <= card.units
                assert not (whole and units)

    @invariant()
    def a_cluster_that_sees_it_all_anew_is_the_same(self) -> None:
        fresh = ClusterModel()
        for pod, node, allocation in self.world.held.values():
            fresh.hold(pod, node, allocation)
        for each in self.world.nodes.values():
            fresh.set_node(each)
        for name in self.world.nodes:
            assert _facts(fresh, name) == _facts(self.cluster, name)


def _facts(cluster: ClusterModel, name: str) -> Any:
    state = cluster.state(name)
    assert state is not None
    columns, at = cluster.columns, state.index
    rows = columns.resource_rows
    cards = range(len(state.cards))
    return (
        {name: int(columns.free[rows[name], at]) for name in ("cpu", "x.io/y", "pods")},
        [int(columns.card_free[row, at]) for row in cards],
        [int(columns.card_total[row, at]) for row in cards],
        [int(columns.card_compute[row, at]) for row in cards],
        int(columns.whole_free[at]),
        int(columns.largest_free[at]),
        int(columns.pods[at]),
        set(state.pods),
    )


TestRules = Rules.TestCase
TestRules.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)


@pytest.mark.slow
@pytest.mark.timeout(900)
class TestRulesAtLength(Rules.TestCase):  # type: ignore[misc, valid-type]  # made at run time
    settings = settings(max_examples=400, stateful_step_count=25, deadline=None)
