"""The pure parts of the autoscaler: the sizes that metrics propose, and the limits of a change."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeclient.objects import Obj
from localkube.controllers.autoscaler_limits import (
    Past,
    ScaleHistory,
    allow,
    rate_limit,
    remember_change,
)
from localkube.controllers.autoscaler_metrics import (
    NoMetric,
    Sample,
    Target,
    propose,
    requests_of,
    samples_of,
)

NOW = datetime.datetime(2026, 11, 15, 12, tzinfo=datetime.UTC)
LONG_AGO = "2026-11-15T10:00:00Z"
HALF = Target(50, None, "cpu")  # of the request


def pod(name: str, phase: str = "Running", ready: str = "True", request: str = "100m") -> Obj:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": LONG_AGO}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": request}}}]},
        "status": {"phase": phase, "startTime": LONG_AGO, "conditions": [condition]},
    }


def using(**amounts: int) -> dict[str, Sample]:
    window = datetime.timedelta(seconds=15)
    return {name: Sample(amount, NOW, window) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("usage", "replicas", "percent"),
    [
        ((50, 50), 2, 50),
        ((54, 54), 2, 54),
        ((100, 100), 4, 100),
        ((90, 60), 3, 75),
        ((10, 10), 1, 10),
    ],
)
def test_the_size_brings_utilization_to_its_target(
    usage: tuple[int, int], replicas: int, percent: int
) -> None:
    samples = using(a=usage[0], b=usage[1])
    found = propose(2, [pod("a"), pod("b")], samples, HALF, NOW)
    assert (found.replicas, found.utilization) == (replicas, percent)
    assert found.average == sum(usage) // 2


def test_an_average_needs_no_requests() -> None:
    target = Target(None, 1000, "memory")
    found = propose(1, [pod("a")], using(a=3000), target, NOW)
    assert (found.replicas, found.average, found.utilization) == (3, 3000, None)


def test_a_pod_without_a_sample_causes_no_scaling() -> None:
    pods = [pod("a"), pod("b")]
    # The pod with a sample proposes half the size; the other one counts as busy.
    assert propose(2, pods, using(a=25), HALF, NOW).replicas == 2
    # The pod with a sample proposes twice the size; the other one counts as idle.
    assert propose(2, pods, using(a=100), HALF, NOW).replicas == 2
    assert propose(2, pods, using(a=200), HALF, NOW).replicas == 4


def test_pending_terminating_and_failed_pods_do_not_count() -> None:
    leaving = pod("c")
    leaving["metadata"]["deletionTimestamp"] = LONG_AGO
    pods = [pod("a"), pod("b", "Pending"), leaving, pod("d", "Failed")]
    assert propose(2, pods, using(a=25, c=500, d=500), HALF, NOW).replicas == 1


def test_a_pod_that_has_only_begun_does_not_count() -> None:
    young = pod("b", ready="False")
    young["status"]["startTime"] = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert propose(1, [pod("a"), young], using(a=50, b=500), HALF, NOW).replicas == 1


def test_a_missing_metric_is_reported_with_its_reason() -> None:
    with pytest.raises(NoMetric, match="no pods returned by selector"):
        propose(1, [], using(a=1), HALF, NOW)
    with pytest.raises(NoMetric, match="did not receive metrics for targeted pods"):
        propose(1, [pod("a", "Pending")], using(a=1), HALF, NOW)
    bare = pod("a")
    bare["spec"]["containers"][0]["resources"] = {}
    with pytest.raises(NoMetric, match="missing request for cpu in container c of Pod a"):
        propose(1, [bare], using(a=1), HALF, NOW)
    with pytest.raises(NoMetric, match="container x not found in Pod a"):
        requests_of([pod("a")], "cpu", "x")


def test_samples_are_sums_over_containers() -> None:
    def metric(name: str, *usages: Obj) -> Obj:
        containers = [{"name": f"c{n}", "usage": usage} for n, usage in enumerate(usages)]
        return {
            "metadata": {"name": name},
            "timestamp": LONG_AGO,
            "window": "15s",
            "containers": containers,
        }

    found = samples_of(
        [
            metric("a", {"cpu": "100m"}, {"cpu": "1"}),
            metric("b", {"cpu": "1"}, {"memory": "1Gi"}),
            metric("c"),
        ],
        "cpu",
        "",
    )
    assert {name: sample.amount for name, sample in found.items()} == {"a": 1100}
    assert found["a"].window.total_seconds() == 15
    one = samples_of([metric("a", {"cpu": "100m"}, {"cpu": "1"})], "cpu", "c1")
    assert one["a"].amount == 1000


def spec(**more: Any) -> Obj:
    return {"minReplicas": 2, "maxReplicas": 10, **more}


def rules(select: str = "Max", window_s: int = 0, **policies: int) -> Obj:
    listed = [{"type": k, "value": v, "periodSeconds": 60} for k, v in policies.items()]
    return {"selectPolicy": select, "stabilizationWindowSeconds": window_s, "policies": listed}


@pytest.mark.parametrize(
    ("current", "wish", "size", "limited"),
    [
        (4, 6, 6, "DesiredWithinRange"),
        (4, 9, 8, "ScaleUpLimit"),
        (8, 15, 10, "TooManyReplicas"),
        (4, 1, 2, "TooFewReplicas"),
        (1, 9, 4, "ScaleUpLimit"),
    ],
)
def test_without_behavior_it_at_most_doubles(
    current: int, wish: int, size: int, limited: str
) -> None:
    found = allow(spec(), ScaleHistory(), current, wish, NOW)
    assert (found.replicas, found.limited[0]) == (size, limited)
    assert found.is_limited == (limited != "DesiredWithinRange")
    assert found.able[0] == "ReadyForNewScale"


def test_the_size_goes_down_only_after_five_minutes_of_lower_load() -> None:
    memory = ScaleHistory([Past(8, NOW)])
    held = allow(spec(), memory, 8, 3, NOW + datetime.timedelta(seconds=299))
    assert (held.replicas, held.able[0]) == (8, "ScaleDownStabilized")
    later = allow(spec(), memory, 8, 3, NOW + datetime.timedelta(seconds=300))
    assert (later.replicas, later.able[0]) == (3, "ReadyForNewScale")


def test_behavior_sets_windows_and_rates() -> None:
    behavior = {"scaleUp": rules(window_s=60, Pods=2), "scaleDown": rules(window_s=0, Percent=50)}
    memory = ScaleHistory([Past(4, NOW)])
    held = allow(spec(behavior=behavior), memory, 4, 8, NOW + datetime.timedelta(seconds=30))
    assert (held.replicas, held.able[0]) == (4, "ScaleUpStabilized")
    free = allow(spec(behavior=behavior), ScaleHistory(), 4, 8, NOW)
    assert (free.replicas, free.limited[0]) == (6, "ScaleUpLimit")
    down = allow(spec(behavior=behavior), ScaleHistory(), 8, 2, NOW)
    assert (down.replicas, down.limited[0]) == (4, "ScaleDownLimit")


@pytest.mark.parametrize(
    ("given_rules", "way", "limit"),
    [
        (rules(Pods=4, Percent=100), 1, 16),
        (rules("Min", Pods=4, Percent=100), 1, 12),
        (rules("Disabled", Pods=4), 1, 8),
        (rules(Pods=4, Percent=25), -1, 4),
        (rules("Min", Pods=4, Percent=25), -1, 6),
    ],
)
def test_select_policy_chooses_the_largest_or_smallest_change(
    given_rules: Obj, way: int, limit: int
) -> None:
    assert rate_limit(given_rules, [], 8, NOW, way) == limit


def test_earlier_changes_in_the_period_count_for_its_policy() -> None:
    memory = ScaleHistory()
    limits = spec(behavior={"scaleUp": rules(Pods=4), "scaleDown": rules(Pods=4)})
    remember_change(limits, memory, 3, NOW)
    soon, later = (NOW + datetime.timedelta(seconds=s) for s in (30, 61))
    assert rate_limit(rules(Pods=4), memory.changes, 8, soon, 1) == 9
    assert rate_limit(rules(Pods=4), memory.changes, 8, later, 1) == 12


@given(
    st.integers(1, 10),
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.booleans(),
)
def test_the_size_is_always_within_its_bounds(current: int, wishes: list[int], own: bool) -> None:
    behavior = {"scaleUp": rules(Pods=2), "scaleDown": rules(Percent=50, window_s=30)}
    limits = spec(behavior=behavior) if own else spec()
    memory, size, now = ScaleHistory(), max(2, current), NOW
    for wish in wishes:
        found = allow(limits, memory, size, wish, now)
        assert 2 <= found.replicas <= 10
        remember_change(limits, memory, found.replicas - size, now)
        size, now = found.replicas, now + datetime.timedelta(seconds=15)
