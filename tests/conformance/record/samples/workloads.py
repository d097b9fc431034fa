"""What makes pods: apps, batch, autoscaling and policy."""

from __future__ import annotations

from tests.conformance.record.case import Json
from tests.conformance.record.objects import container, job, obj, pdb, template, workload
from tests.conformance.record.samples.sample import Sample

_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def _apps(kind: str, label: str, **spec: Json) -> Sample:
    name = f"{kind.lower()}-{label}"
    path = f"/apis/apps/v1/namespaces/{{ns}}/{kind.lower()}s"
    return Sample(f"{kind}-{label}", path, workload(kind, name, **spec))


def _job(label: str, template_spec: Json = None, **spec: Json) -> Sample:
    body = job(f"job-{label}", template_spec, **spec)
    return Sample(f"Job-{label}", "/apis/batch/v1/namespaces/{ns}/jobs", body)


def _cronjob(label: str, job_spec: Json = None, **spec: Json) -> Sample:
    inner = job("unused", **(job_spec or {}))["spec"]
    inside = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": inner}} | spec
    body = obj("batch/v1", "CronJob", f"cronjob-{label}", spec=inside)
    return Sample(f"CronJob-{label}", "/apis/batch/v1/namespaces/{ns}/cronjobs", body)


def _autoscaler(label: str, version: str, **spec: Json) -> Sample:
    api_version = f"autoscaling/{version}"
    inside = {"scaleTargetRef": _SCALED, "maxReplicas": 3} | spec
    body = obj(api_version, "HorizontalPodAutoscaler", f"hpa-{label}", spec=inside)
    path = f"/apis/{api_version}/namespaces/{{ns}}/horizontalpodautoscalers"
    return Sample(f"HorizontalPodAutoscaler-{label}", path, body)


def _pdb(label: str, **spec: Json) -> Sample:
    path = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
    return Sample(f"PodDisruptionBudget-{label}", path, pdb(f"pdb-{label}", **spec))


_REVISION = obj("apps/v1", "ControllerRevision", "revision", data={"spec": {"a": 1}}, revision=3)
_CONTROLLER = obj("v1", "ReplicationController", "rc", spec={"template": template()})

SAMPLES = (
    _apps("Deployment", "minimal"),
    _apps("Deployment", "zero", replicas=0, paused=True, minReadySeconds=3),
    _apps("Deployment", "recreate", strategy={"type": "Recreate"}),
    _apps(
        "Deployment",
        "rolling",
        strategy={"rollingUpdate": {"maxSurge": 2}},
        revisionHistoryLimit=0,
        progressDeadlineSeconds=30,
    ),
    _apps("ReplicaSet", "minimal"),
    _apps("StatefulSet", "minimal", serviceName="s"),
    _apps(
        "StatefulSet",
        "parallel",
        podManagementPolicy="Parallel",
        replicas=2,
        volumeClaimTemplates=[_CLAIM],
        ordinals={"start": 3},
    ),
    _apps(
        "StatefulSet",
        "ondelete",
        updateStrategy={"type": "OnDelete"},
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"},
    ),
    _apps("StatefulSet", "partition", updateStrategy={"rollingUpdate": {"partition": 2}}),
    _apps("DaemonSet", "minimal"),
    _apps("DaemonSet", "ondelete", updateStrategy={"type": "OnDelete"}),
    _apps(
        "DaemonSet",
        "surge",
        updateStrategy={"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}},
    ),
    _job("minimal"),
    _job("indexed", completionMode="Indexed", completions=4, parallelism=2),
    _job(
        "indexed-per-index",
        completionMode="Indexed",
        completions=4,
        backoffLimitPerIndex=1,
        maxFailedIndexes=2,
    ),
    _job("backoff", backoffLimit=2, activeDeadlineSeconds=9, ttlSecondsAfterFinished=5),
    _job("suspended", suspend=True, parallelism=3),
    _job("queue", {"restartPolicy": "OnFailure"}, parallelism=3),
    _job(
        "failure-policy",
        podFailurePolicy={
            "rules": [
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            ]
        },
    ),
    _job(
        "success-policy",
        completionMode="Indexed",
        completions=2,
        successPolicy={"rules": [{"succeededIndexes": "0"}]},
    ),
    _job(
        "manual-selector",
        manualSelector=True,
        selector={"matchLabels": {"j": "1"}},
        template={
            "metadata": {"labels": {"j": "1"}},
            "spec": {"restartPolicy": "Never", "containers": [container()]},
        },
    ),
    _cronjob("minimal"),
    _cronjob(
        "full",
        {"backoffLimit": 1},
        timeZone="Etc/UTC",
        concurrencyPolicy="Forbid",
        suspend=True,
        startingDeadlineSeconds=5,
        successfulJobsHistoryLimit=0,
    ),
    _autoscaler("v1", "v1", targetCPUUtilizationPercentage=50),
    _autoscaler("v1-minimal", "v1"),
    _autoscaler(
        "v2",
        "v2",
        minReplicas=2,
        metrics=[
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 60},
                },
            },
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "m"},
                    "target": {"type": "AverageValue", "averageValue": "100m"},
                },
            },
        ],
    ),
    _autoscaler("v2-minimal", "v2"),
    _autoscaler(
        "v2-behavior",
        "v2",
        behavior={
            "scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]},
            "scaleUp": {},
        },
    ),
    _pdb("min", minAvailable=1),
    _pdb("max", maxUnavailable="25%", unhealthyPodEvictionPolicy="AlwaysAllow"),
    Sample("ControllerRevision", "/apis/apps/v1/namespaces/{ns}/controllerrevisions", _REVISION),
    Sample("ReplicationController", "/api/v1/namespaces/{ns}/replicationcontrollers", _CONTROLLER),
)
