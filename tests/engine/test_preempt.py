"""Victims of preemption: few, of low priority, and on the right card."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupool.core.pods import DisruptionBudget, PodRequest, Spread
from gpupool.engine import preempt as preempt_module
from gpupool.engine.attempts import InTrial
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.decide import Placement, decide
from gpupool.engine.preempt import NoPreemption, Preemption, preempt, preempt_on
from kubeclient.selectors import parse_label_selector
from tests.engine.building import POLICY, cluster_of, gpu_node, gpu_pod, place, shared, whole
from tests.engine.samples import often, pod_terms, pods, themed_nodes


def victims(cluster: ClusterModel, pod: PodRequest, *budgets: DisruptionBudget) -> set[str]:
    found = preempt(cluster, pod, POLICY, budgets)
    assert isinstance(found, Preemption), found
    return set(found.victims)


def filled(*pods: PodRequest, **more: Any) -> ClusterModel:
    cluster = cluster_of(gpu_node(**more))
    for pod in pods:
        place(cluster, pod)
    return cluster


def test_preemption_frees_one_card_and_not_a_little_of_each() -> None:
    crowd = [shared(f"a{n}", 5) for n in range(3)]  # fills the first card
    cluster = filled(*crowd, shared("b", 15))
    assert victims(cluster, whole("high", priority=1)) == {"b"}
    assert victims(cluster, shared("high", 10, priority=1)) == {"b"}
    assert len(victims(cluster, shared("high", 5, priority=1))) == 1


def test_a_card_that_cannot_be_freed_is_not_considered() -> None:
    crowd = [shared(f"z{n}", 5) for n in range(3)]
    cluster = filled(whole("king", priority=9), *crowd, shared("b", 15), count=3)
    assert victims(cluster, whole("high", priority=1)) == {"b"}


def test_victims_of_lower_priority_come_before_fewer_victims() -> None:
    cluster = filled(*[shared(f"a{n}", 5) for n in range(3)], shared("b", 15, priority=1))
    assert victims(cluster, whole("high", priority=2)) == {"a0", "a1", "a2"}


def test_pods_of_the_same_priority_are_not_preempted() -> None:
    cluster = filled(whole("a", priority=1), count=1)
    found = preempt(cluster, whole("b", priority=1), POLICY)
    assert found == NoPreemption(
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_the_message_counts_nodes_where_preemption_does_not_help() -> None:
    cluster = filled(whole("a"), count=1)
    cluster.set_node(gpu_node("cordoned", unschedulable=True))
    cluster.set_node(gpu_node("small", allocatable={"cpu": 1, "pods": 1}))
    found = preempt(cluster, whole("b"), POLICY)
    assert found == NoPreemption(
        "0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_zone_that_is_ahead_helps_only_if_a_pod_leaves_that_is_counted(is_counted: bool) -> None:
    """The other zone has no cards. In this one is the second pod of an app, or a stranger."""
    labels = {"app": "a"}
    zones = (gpu_node("n", count=2, labels={"z": "1"}), gpu_node("m", count=0, labels={"z": "2"}))
    cluster = cluster_of(*zones)
    place(cluster, whole("kept", priority=9, labels=labels))
    place(cluster, whole("low", labels=labels if is_counted else {}))
    even = Spread("z", parse_label_selector("app=a"), 2 if is_counted else 1, True)
    found = preempt(cluster, whole("new", priority=1, labels=labels, spreads=(even,)), POLICY)
    if is_counted:
        assert isinstance(found, Preemption)
        assert found.victims == ("low",)
    else:
        assert isinstance(found, NoPreemption)
        assert "1 node(s) didn't match pod topology spread constraints" in found.message


def test_a_pod_with_preemption_policy_never_does_not_preempt() -> None:
    cluster = filled(whole("a"), count=1)
    found = preempt(cluster, whole("b", priority=1, may_preempt=False), POLICY)
    assert found == NoPreemption("not eligible due to preemptionPolicy=Never.")


def test_disruption_budgets_are_respected_where_possible() -> None:
    guarded = whole("a", labels={"app": "guarded"})
    cluster = filled(guarded, whole("b"))
    budget = DisruptionBudget("default", parse_label_selector("app=guarded"), 0)
    assert victims(cluster, whole("high", priority=1), budget) == {"b"}
    found = preempt(cluster, whole("high", 2, priority=1), POLICY, (budget,))
    assert isinstance(found, Preemption)
    assert (set(found.victims), found.broken_budgets) == ({"a", "b"}, 1)


def test_the_node_with_the_least_damage_is_taken() -> None:
    cluster = cluster_of(gpu_node("m", count=1), gpu_node("n", count=1))
    place(cluster, whole("a", priority=2))
    place(cluster, whole("b", priority=1))
    assert victims(cluster, whole("high", priority=3)) == {"b"}


def test_cpu_is_freed_as_well_and_nothing_is_changed_by_asking() -> None:
    hungry = gpu_pod("cpu", resources={"cpu": 64_000, "pods": 1})
    cluster = filled(hungry)
    before = cluster.columns.free.copy()
    assert victims(cluster, shared("high", 5, priority=1)) == {"cpu"}
    assert (cluster.columns.free == before).all()
    assert cluster.held("cpu") is not None


def test_a_pod_that_the_scheduler_does_not_support_makes_nobody_leave() -> None:
    cluster = filled(whole("a"), count=1)
    pod = whole("b", priority=1, unsupported=("spec.resourceClaims",))
    assert preempt(cluster, pod, POLICY) == NoPreemption(
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_a_node_that_would_be_too_small_even_when_empty_says_why() -> None:
    cluster = filled(shared("a", 5, priority=0), shared("king", 5, priority=9), count=1)
    assert preempt(cluster, whole("high", priority=1), POLICY) == NoPreemption(
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )


def test_the_search_ends_when_enough_nodes_would_do() -> None:
    cluster = cluster_of(gpu_node("m", 1), gpu_node("n", 1))
    for name in ("a", "b"):
        place(cluster, whole(name))
    found = preempt(cluster, whole("high", priority=1), POLICY, enough=1)
    assert isinstance(found, Preemption)
    assert len(found.victims) == 1


def test_on_a_node_that_is_not_there_nobody_leaves() -> None:
    cluster = filled(whole("a"), count=1)
    assert preempt_on(cluster, whole("high", priority=1), POLICY, "unheard-of") is None
    found = preempt_on(cluster, whole("high", priority=1), POLICY, "n")
    assert found is not None
    assert found.victims == ("a",)


def test_a_budget_of_another_namespace_protects_nobody() -> None:
    everybody = parse_label_selector("")
    cluster = filled(whole("a"), count=1)
    found = preempt(
        cluster, whole("high", priority=1), POLICY, [DisruptionBudget("other", everybody, 0)]
    )
    assert isinstance(found, Preemption)
    assert found.broken_budgets == 0


def test_a_reservation_and_a_pod_that_is_spared_are_no_victims() -> None:
    cluster = filled(shared("a", 15), count=1)
    assert isinstance(preempt(cluster, whole("b", priority=1), POLICY, (), {"a"}), NoPreemption)
    assert preempt_on(cluster, whole("b", priority=1), POLICY, "n", (), {"a"}) is None
    free = cluster_of(gpu_node(count=1))
    kept = shared("kept", 15)
    found = decide(free, kept, POLICY)
    assert isinstance(found, Placement)
    free.reserve(kept, *found)
    assert isinstance(preempt(free, whole("b", priority=1), POLICY), NoPreemption)


def test_a_pod_that_has_not_started_leaves_before_one_that_runs() -> None:
    runs = shared("a-runs", 15, started="2026-01-01T00:00:00Z")
    for waits in ("b-waits", "A-waits"):  # whichever comes first by name
        cluster = filled(runs, shared(waits, 15))
        assert victims(cluster, shared("high", 15, priority=1)) == {waits}


def test_the_node_is_cleared_whose_victims_have_not_started() -> None:
    cluster = cluster_of(gpu_node("n1", 1), gpu_node("n2", 1))
    for node, started in (("n1", "2026-01-01T00:00:00Z"), ("n2", "")):
        pod = whole(f"on-{node}", started=started, node_name=node)
        place(cluster, pod)
    assert victims(cluster, whole("high", priority=1)) == {"on-n2"}


@pytest.mark.parametrize("theme", ["gpus", "everything"])
@settings(max_examples=60)
@given(st.data())
def test_what_is_found_quickly_is_what_the_trials_find(theme: str, data: st.DataObject) -> None:
    cluster = cluster_of(*data.draw(st.lists(themed_nodes(theme), max_size=4)))
    for number in range(data.draw(st.integers(0, 8))):
        place(cluster, data.draw(pods(theme, uid=f"u{number}")))
    # Pods that want others near them are those for which fewer pods are not always better.
    near = data.draw(often((), st.tuples(pod_terms)))
    high = replace(data.draw(pods(theme, uid="high")), priority=2, affinity=near)
    quick = preempt(cluster, high, POLICY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preempt_module, "out_of_reach", lambda *_: [])
        patch.setattr(preempt_module, "_wants_nobody", lambda _: False)
        patch.setattr(
            preempt_module, "only_room_decides", lambda *given: np.zeros(len(given[2]), np.bool_)
        )
        patch.setattr(InTrial, "_needs_cards_of", lambda *_: False)
        assert preempt(cluster, high, POLICY) == quick
