"""Optional fields that are not there: Go reads a zero, and so do the controllers."""

from pathlib import Path
from typing import Any

import pytest

from kubeclient import resources as r
from kubeclient.objects import Obj
from kubeclient.resources import Resource
from localkube.controllers import (
    autoscaler,
    cron_job,
    deployment,
    endpoints,
    job,
    node_lifecycle,
)
from localkube.controllers.run import Controller
from tests.localkube.controllers.desk import desk_for

_POD: Obj = {"containers": [{"name": "c", "image": "i"}]}
_TEMPLATE: Obj = {"metadata": {"labels": {"app": "x"}}, "spec": _POD}
_SELECTOR: Obj = {"matchLabels": {"app": "x"}}
_DEPLOYMENT: Obj = {"selector": _SELECTOR, "template": _TEMPLATE, "replicas": 1}
_JOB: Obj = {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}
_CRON_JOB: Obj = {"schedule": "0 0 29 2 *", "jobTemplate": {"spec": _JOB}}
_TARGET: Obj = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
_FINISHED = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]

Subject = tuple[Controller, Resource, Obj, Obj]


def _conditions(*kinds: str, status: str = "False") -> Obj:
    return {"conditions": [{"type": kind, "status": status} for kind in kinds]}


SUBJECTS: dict[str, Subject] = {
    "a paused Deployment's condition without a reason": (
        deployment.controller(),
        r.DEPLOYMENTS,
        {**_DEPLOYMENT, "paused": True},
        _conditions("Progressing", "Available", status="Unknown"),
    ),
    "a Deployment's condition without a reason": (
        deployment.controller(),
        r.DEPLOYMENTS,
        _DEPLOYMENT,
        _conditions("Progressing", "Available"),
    ),
    "an autoscaler's condition without a time": (
        autoscaler.controller(),
        r.AUTOSCALERS,
        {"scaleTargetRef": _TARGET, "maxReplicas": 3},
        _conditions("AbleToScale", "ScalingActive"),
    ),
    "a CronJob's reference without a uid": (
        cron_job.CONTROLLER,
        r.CRON_JOBS,
        _CRON_JOB,
        {"active": [{}, {"name": "a"}, {"uid": "b"}, {"name": "a", "uid": "c"}]},
    ),
    "a finished Job's condition without a time": (
        job.TTL_CONTROLLER,
        r.JOBS,
        {**_JOB, "ttlSecondsAfterFinished": 2**31 - 1},
        {
            "conditions": _FINISHED,
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:00Z",
        },
    ),
}


@pytest.mark.parametrize("name", SUBJECTS)
async def test_the_controller_copes_with(tmp_path: Path, name: str) -> None:
    controller, resource, spec, status = SUBJECTS[name]
    async with desk_for(tmp_path, controller) as desk:
        await desk.create(resource, {"metadata": {"name": "it"}, "spec": spec})
        await desk.kube.patch(resource.path("default", "it", "status"), {"status": status})
        await desk.settle()  # raises what a reconcile raises


async def test_a_cron_job_replaces_no_job_of_another_namespace(tmp_path: Path) -> None:
    async with desk_for(tmp_path, cron_job.CONTROLLER) as desk:
        await desk.kube.create(r.NAMESPACES, {"metadata": {"name": "other"}})
        foreign: Any = {"metadata": {"name": "theirs", "namespace": "other"}, "spec": _JOB}
        made = await desk.kube.create(r.JOBS, foreign)
        spec = {**_CRON_JOB, "schedule": "* * * * *", "concurrencyPolicy": "Replace"}
        await desk.create(r.CRON_JOBS, {"metadata": {"name": "it"}, "spec": spec})
        listed = {"name": "theirs", "namespace": "other", "uid": made["metadata"]["uid"]}
        status = {"active": [listed], "lastScheduleTime": "2026-01-01T00:00:00Z"}
        await desk.kube.patch(r.CRON_JOBS.path("default", "it", "status"), {"status": status})
        await desk.settle()
        assert await desk.kube.get(r.JOBS, "theirs", "other")
        assert len(await desk.all(r.JOBS)) == 2


async def test_a_pod_with_an_address_and_no_node_is_an_endpoint_without_a_node(
    tmp_path: Path,
) -> None:
    async with desk_for(tmp_path, endpoints.controller()) as desk:
        spec = {"selector": {"app": "x"}, "ports": [{"port": 80}]}
        await desk.create(r.SERVICES, {"metadata": {"name": "s"}, "spec": spec})
        await desk.create(r.PODS, {"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": _POD})
        status = {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]}
        await desk.kube.patch(r.PODS.path("default", "p", "status"), {"status": status})
        await desk.settle()
        slices = await desk.all(r.ENDPOINT_SLICES)
        (found,) = [each for each in slices if each["metadata"].get("generateName") == "s-"]
    (endpoint,) = found["endpoints"]
    assert endpoint["addresses"] == ["10.0.0.7"]
    assert "nodeName" not in endpoint


async def test_a_lease_without_a_spec_is_no_heartbeat(tmp_path: Path) -> None:
    async with desk_for(tmp_path, node_lifecycle.CONTROLLER) as desk:
        lease = {"metadata": {"name": "n", "namespace": "kube-node-lease"}}
        await desk.kube.create(r.LEASES, lease)
        await desk.add_node("n")
        await desk.settle()
        (node,) = await desk.all(r.NODES)
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]
