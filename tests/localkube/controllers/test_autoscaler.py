"""HorizontalPodAutoscalers on a real API server, with metrics from the test."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import AUTOSCALERS, DEPLOYMENTS, PODS
from localkube.controllers import autoscaler
from tests.localkube.controllers.desk import Desk, desk_for
from tests.localkube.controllers.samples import pod, workload


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk_for(tmp_path, autoscaler.controller()) as desk:
        yield desk


@pytest.fixture
def usage(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The CPU of each pod that metrics.k8s.io returns; the test fills it."""
    found: dict[str, str] = {}

    def pod_usage() -> dict[tuple[str, str], list[Obj]]:
        return {
            ("default", name): [{"name": "c", "usage": {"cpu": cpu, "memory": "64Mi"}}]
            for name, cpu in found.items()
        }

    monkeypatch.setattr(desk.server.api.nodes, "pod_usage", pod_usage)
    return found


async def create(desk: Desk, replicas: int = 2, **spec: Any) -> None:
    await desk.create(DEPLOYMENTS, workload(replicas=replicas))
    for number in range(replicas):
        made = pod(f"web-{number}", "web")
        resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
        made["spec"]["containers"][0]["resources"] = resources
        made = await desk.create(PODS, made)
        await desk.set_phase(made, "Running", startTime="2020-01-01T00:00:00Z")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    made_spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5, **spec}
    await desk.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": made_spec})
    await desk.settle()


async def size(desk: Desk) -> int:
    found: int = (await desk.get(DEPLOYMENTS, "web"))["spec"]["replicas"]
    return found


async def conditions(desk: Desk) -> dict[str, tuple[str, str]]:
    found = (await desk.get(AUTOSCALERS, "web"))["status"]["conditions"]
    return {c["type"]: (c["status"], c["reason"]) for c in found}


async def test_load_brings_more_pods(desk: Desk, usage: dict[str, str]) -> None:
    usage |= {"web-0": "160m", "web-1": "160m"}
    await create(desk)
    assert await size(desk) == 4
    status = (await desk.get(AUTOSCALERS, "web"))["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    current = {"averageUtilization": 160, "averageValue": "160m"}
    assert status["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": current}}
    ]
    assert await conditions(desk) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    why = "cpu resource utilization (percentage of request) above target"
    assert desk.events("SuccessfulRescale") == [f"New size: 4; reason: {why}"]
    assert desk.again_s("web") > 14


async def test_less_load_brings_fewer_pods_after_a_while(desk: Desk, usage: dict[str, str]) -> None:
    usage |= {"web-0": "10m", "web-1": "10m"}
    await create(desk)
    assert await size(desk) == 2
    assert (await conditions(desk))["AbleToScale"] == ("True", "ScaleDownStabilized")
    desk.forward(301)
    await desk.settle()
    assert await size(desk) == 1
    assert desk.events("SuccessfulRescale") == ["New size: 1; reason: All metrics below target"]


async def test_the_bounds_hold_whatever_the_load(desk: Desk, usage: dict[str, str]) -> None:
    await create(desk, 2, minReplicas=3, maxReplicas=5)
    assert await size(desk) == 3
    why = "Current number of replicas below Spec.MinReplicas"
    assert desk.events("SuccessfulRescale") == [f"New size: 3; reason: {why}"]


async def test_memory_is_shown_in_binary_units(desk: Desk, usage: dict[str, str]) -> None:
    usage |= {"web-0": "1m", "web-1": "1m"}
    target = {"type": "Utilization", "averageUtilization": 50}
    metric = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    await create(desk, metrics=[metric])
    status = (await desk.get(AUTOSCALERS, "web"))["status"]
    current = {"averageUtilization": 50, "averageValue": "64Mi"}
    assert status["currentMetrics"][0]["resource"]["current"] == current


async def test_without_metrics_the_condition_has_the_reason(
    desk: Desk, usage: dict[str, str]
) -> None:
    await create(desk)
    assert (await conditions(desk))["ScalingActive"] == ("False", "FailedGetResourceMetric")
    why = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics "
        "returned from resource metrics API"
    )
    assert desk.events("FailedGetResourceMetric") == [why]
    assert desk.events("FailedComputeMetricsReplicas") == [
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric "
        f"value: {why}"
    ]


async def test_a_target_that_cannot_be_scaled_sets_a_condition(
    desk: Desk, usage: dict[str, str]
) -> None:
    await create(desk, scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "no"})
    assert (await conditions(desk))["AbleToScale"] == ("False", "FailedGetScale")
    assert desk.events("FailedGetScale") == ['deployments.apps "no" not found']


async def test_a_target_of_size_zero_is_switched_off(desk: Desk, usage: dict[str, str]) -> None:
    await create(desk, 0)
    assert (await conditions(desk))["ScalingActive"] == ("False", "ScalingDisabled")
    assert await size(desk) == 0


async def test_custom_metrics_are_not_there(desk: Desk, usage: dict[str, str]) -> None:
    target = {"type": "AverageValue", "averageValue": "1"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": target}}
    await create(desk, metrics=[metric])
    assert (await conditions(desk))["ScalingActive"] == ("False", "FailedGetPodsMetric")
    assert desk.events("FailedGetPodsMetric") == [
        "unable to get metric rps: unable to fetch metrics from custom metrics API: no custom "
        "metrics API (custom.metrics.k8s.io) registered"
    ]


async def test_a_size_that_somebody_sets_meanwhile_stays(
    desk: Desk, usage: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage |= {"web-0": "160m", "web-1": "160m"}
    page = Kube.page

    async def page_and_change(kube: Kube, path: str) -> Obj:
        found = await page(kube, path)
        if path.endswith("/scale"):
            await kube.patch(DEPLOYMENTS.path("default", "web"), {"spec": {"replicas": 3}})
        return found

    monkeypatch.setattr(Kube, "page", page_and_change)
    await create(desk)
    assert await size(desk) == 3
    assert (await conditions(desk))["AbleToScale"] == ("False", "FailedUpdateScale")
