"""Cached verdicts against those of a cluster that is built from scratch, compiled against not."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide, policy_for
from gpupool.engine.policies import POLICIES
from gpupool.engine.policies.mix import Demand, Mix
from gpupool.engine.policies.places import MOST_CARDS
from gpupool.engine.policies.policy import (
    BULKS,
    Ask,
    Policy,
    Prices,
    PriceTable,
    price_table,
)
from gpupool.engine.verdicts import verdict_of
from tests.engine import samples

_ASKS = (Ask(1, 1, 0, 1, 0), Ask(1, 3, 0, 1, 0), Ask(2, 0, 0, 2, 0), Ask(1, 2, 30, 1, 0))
_MIXES = [
    Mix(tuple(Demand(ask, (), 3) for ask in asks), (4, 4), sizes)
    for asks in (_ASKS[:3], _ASKS)
    for sizes in ((4,), (2, 3, 4))
]
_USES = 1 + (MOST_CARDS + 1) * 2 * 64


def _table(cards: int, milli: int) -> PriceTable:
    """Prices without sense, but different for nearly every use."""
    return price_table(np.arange(_USES) * (7919 + cards + milli) % 997 * BULKS)


_RESIDUE = [POLICIES["residue"](mix) for mix in _MIXES]
policies = st.sampled_from(
    _RESIDUE
    + [replace(policy, prices=Prices(_table)) for policy in _RESIDUE]
    + [POLICIES["fgd"](mix) for mix in _MIXES[:1]]
)


def costs_of(cluster: ClusterModel, pod: PodRequest, policy: Policy) -> dict[str, tuple[int, int]]:
    """By node: its cost, and what the pod would use of it."""
    verdict = verdict_of(cluster, pod, policy_for(pod, policy))
    return {
        cluster.at(n).node.name: (int(verdict.costs[n]), int(verdict.uses[n]))
        for n in cluster.all_nodes().tolist()
    }


def placed(cluster: ClusterModel, pod: PodRequest, policy: Policy) -> Placement | None:
    decision = decide(cluster, pod, policy)
    return decision if isinstance(decision, Placement) else None


def rebuilt(cluster: ClusterModel, compiled: bool) -> ClusterModel:
    """The same nodes in the same order with the same pods, and an empty verdict cache."""
    copy = ClusterModel(compiled)
    copy.models |= cluster.models
    copy.machines |= cluster.machines
    for index in cluster.all_nodes().tolist():
        copy.set_node(cluster.at(index).node)
    for held in cluster.holds():
        copy.hold(held.pod, held.node, held.allocation)
    return copy


@given(data=st.data(), policy=policies, compiled=st.booleans())
@settings(deadline=None, max_examples=120)
def test_cached_verdicts_equal_those_made_from_scratch_by_the_other_twin(
    data: st.DataObject, policy: Policy, compiled: bool
) -> None:
    """NumPy judges one of the two clusters, and the compiled kernel the other, if it was built."""
    cluster = ClusterModel(compiled)
    for _ in range(4):
        cluster.set_node(data.draw(samples.themed_nodes("gpus")))
    shapes = data.draw(st.lists(samples.pods("gpus"), min_size=2, max_size=3))
    for step in range(data.draw(st.integers(1, 12))):
        event = data.draw(st.sampled_from(("come", "come", "come", "go", "node", "gone")))
        if event == "come":
            pod = replace(data.draw(st.sampled_from(shapes)), uid=f"v{step}")
            decision = decide(cluster, pod, policy)
            if isinstance(decision, Placement):
                cluster.hold(pod, decision.node, decision.allocation)
        elif event == "go":
            cluster.release(f"v{data.draw(st.integers(0, step))}")
        elif event == "node":
            cluster.set_node(data.draw(samples.themed_nodes("gpus")))
        else:
            cluster.remove_node(data.draw(st.sampled_from(samples.NODE_NAMES)))
        scratch = rebuilt(cluster, not compiled)
        for pod in shapes:
            assert placed(cluster, pod, policy) == placed(scratch, pod, policy)
            if len(pod.gpus) <= 1:  # with several asks, `decide` also rules out nodes
                assert costs_of(cluster, pod, policy) == costs_of(scratch, pod, policy)
