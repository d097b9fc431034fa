"""Validation of workloads, scale and status, and deletion of what owns other objects."""

from __future__ import annotations

from tests.conformance.record.case import STRATEGIC, Case, Json, delete, get, patch, post, put
from tests.conformance.record.objects import (
    APPS,
    BATCH,
    DEPLOYMENTS,
    POLICY,
    container,
    deployment,
    job,
    obj,
    pdb,
    template,
    workload,
)

_D = post(DEPLOYMENTS, deployment("d"), save="d")
_AT_D = f"{DEPLOYMENTS}/d"
_SETS = f"{APPS}/statefulsets"
_DAEMONS = f"{APPS}/daemonsets"
_JOBS = f"{BATCH}/jobs"
_CRONS = f"{BATCH}/cronjobs"
_HPAS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"


def _post(name: str, path: str, body: Json) -> Case:
    return Case(name, post(path, body))


def _cron(**spec: Json) -> Json:
    inside = {"schedule": "* * * * *", "jobTemplate": {"spec": job("x")["spec"]}} | spec
    return obj("batch/v1", "CronJob", "c", spec=inside)


def _hpa(**spec: Json) -> Json:
    inside = {
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "maxReplicas": 3,
    } | spec
    return obj("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec=inside)


_DEPLOYMENT = (
    _post("deployment: created", DEPLOYMENTS, deployment("d")),
    Case("deployment: duplicate", post(DEPLOYMENTS, deployment("d")), (_D,)),
    _post(
        "deployment: selector mismatch",
        DEPLOYMENTS,
        deployment("d", selector={"matchLabels": {"z": "z"}}),
    ),
    _post("deployment: nothing in spec", DEPLOYMENTS, obj("apps/v1", "Deployment", "d", spec={})),
    _post("deployment: empty selector", DEPLOYMENTS, deployment("d", selector={})),
    _post(
        "deployment: bad selector",
        DEPLOYMENTS,
        deployment(
            "d",
            selector={
                "matchExpressions": [
                    {"key": "app", "operator": "In", "values": []},
                    {"key": "b", "operator": "Like"},
                ]
            },
        ),
    ),
    _post(
        "deployment: negative numbers",
        DEPLOYMENTS,
        deployment("d", replicas=-1, minReadySeconds=-1, revisionHistoryLimit=-1),
    ),
    _post(
        "deployment: both zero",
        DEPLOYMENTS,
        deployment("d", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
    ),
    _post(
        "deployment: over 100 %",
        DEPLOYMENTS,
        deployment("d", strategy={"rollingUpdate": {"maxUnavailable": "120%"}}),
    ),
    _post(
        "deployment: not a percentage",
        DEPLOYMENTS,
        deployment("d", strategy={"rollingUpdate": {"maxSurge": "many"}}),
    ),
    _post(
        "deployment: recreate with rolling update",
        DEPLOYMENTS,
        deployment("d", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    ),
    _post("deployment: unknown strategy", DEPLOYMENTS, deployment("d", strategy={"type": "Magic"})),
    _post(
        "deployment: deadline too short",
        DEPLOYMENTS,
        deployment("d", minReadySeconds=10, progressDeadlineSeconds=10),
    ),
    _post(
        "deployment: restartPolicy",
        DEPLOYMENTS,
        deployment("d", template=template(restartPolicy="Never")),
    ),
    _post(
        "deployment: bad container in template",
        DEPLOYMENTS,
        deployment("d", template=template(containers=[{"name": "A"}])),
    ),
    _post(
        "deployment: gpu in template",
        DEPLOYMENTS,
        deployment(
            "d",
            template=template(
                containers=[container(resources={"limits": {"nvidia.com/gpu": "1.5"}})]
            ),
        ),
    ),
    _post(
        "deployment: unknown fields strict",
        f"{DEPLOYMENTS}?fieldValidation=Strict",
        deployment("d", replcas=1, template=template(containers=[container(comand=["x"])])),
    ),
    Case(
        "deployment: selector is immutable",
        patch(_AT_D, {"spec": {"selector": {"matchLabels": {"q": "q"}}}}),
        (_D,),
    ),
    Case("deployment: generation", patch(_AT_D, {"spec": {"replicas": 0, "paused": True}}), (_D,)),
    Case("deployment: generation kept", patch(_AT_D, {"metadata": {"labels": {"a": "b"}}}), (_D,)),
)

_SCALE = (
    Case("scale: get", get(f"{_AT_D}/scale"), (_D,)),
    Case(
        "scale: put",
        put(
            f"{_AT_D}/scale",
            obj(
                "autoscaling/v1", "Scale", "d", metadata={"namespace": "{ns}"}, spec={"replicas": 0}
            ),
        ),
        (_D,),
    ),
    Case("scale: patch", patch(f"{_AT_D}/scale", {"spec": {"replicas": 2}}), (_D,)),
    Case("scale: negative", patch(f"{_AT_D}/scale", {"spec": {"replicas": -2}}), (_D,)),
    Case("scale: absent", get(f"{DEPLOYMENTS}/zz/scale")),
    Case(
        "scale: stale",
        put(
            f"{_AT_D}/scale",
            obj(
                "autoscaling/v1",
                "Scale",
                "d",
                metadata={"resourceVersion": "1"},
                spec={"replicas": 1},
            ),
        ),
        (_D,),
    ),
    Case(
        "scale: strategic patch",
        patch(f"{_AT_D}/scale", {"spec": {"replicas": 2}}, STRATEGIC),
        (_D,),
    ),
    Case(
        "scale: statefulset",
        get(f"{_SETS}/s/scale"),
        (post(_SETS, workload("StatefulSet", "s", replicas=2)),),
    ),
    Case(
        "scale: daemonset has none",
        get(f"{_DAEMONS}/s/scale"),
        (post(_DAEMONS, workload("DaemonSet", "s")),),
    ),
    Case(
        "status: patch ignores spec",
        patch(
            f"{_AT_D}/status",
            {"spec": {"replicas": 5}, "status": {"replicas": 0, "observedGeneration": 1}},
        ),
        (_D,),
    ),
    Case(
        "status: put",
        put(
            f"{_AT_D}/status",
            deployment("d")
            | {"status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}},
        ),
        (_D,),
    ),
    Case("status: negative", patch(f"{_AT_D}/status", {"status": {"replicas": -1}}), (_D,)),
    Case(
        "status: ready above replicas",
        patch(f"{_AT_D}/status", {"status": {"replicas": 1, "readyReplicas": 2}}),
        (_D,),
    ),
    Case(
        "status: dropped at create",
        post(DEPLOYMENTS, deployment("d") | {"status": {"replicas": 7}}),
    ),
)

_OTHERS = (
    _post(
        "statefulset: selector mismatch",
        _SETS,
        workload("StatefulSet", "s", selector={"matchLabels": {"z": "z"}}),
    ),
    _post(
        "statefulset: unknown policies",
        _SETS,
        workload("StatefulSet", "s", podManagementPolicy="Some", updateStrategy={"type": "X"}),
    ),
    Case(
        "statefulset: template may change",
        patch(f"{_SETS}/s", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}),
        (post(_SETS, workload("StatefulSet", "s")),),
    ),
    Case(
        "statefulset: claims are immutable",
        patch(f"{_SETS}/s", {"spec": {"serviceName": "other", "volumeClaimTemplates": []}}),
        (post(_SETS, workload("StatefulSet", "s", serviceName="a")),),
    ),
    _post(
        "daemonset: selector mismatch",
        _DAEMONS,
        workload("DaemonSet", "s", selector={"matchLabels": {"z": "z"}}),
    ),
    _post(
        "daemonset: surge and unavailable",
        _DAEMONS,
        workload(
            "DaemonSet", "s", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        ),
    ),
    _post("replicaset: negative", f"{APPS}/replicasets", workload("ReplicaSet", "r", replicas=-1)),
    _post("job: restartPolicy Always", _JOBS, job("j", {"restartPolicy": "Always"})),
    _post("job: no restartPolicy", _JOBS, job("j", {"restartPolicy": None})),
    _post(
        "job: negative numbers",
        _JOBS,
        job(
            "j",
            parallelism=-1,
            completions=-1,
            backoffLimit=-1,
            activeDeadlineSeconds=-1,
            ttlSecondsAfterFinished=-1,
        ),
    ),
    _post(
        "job: indexed without completions", _JOBS, job("j", completionMode="Indexed", parallelism=2)
    ),
    _post(
        "job: selector without manualSelector",
        _JOBS,
        job("j", selector={"matchLabels": {"a": "b"}}),
    ),
    _post("job: success policy without index", _JOBS, job("j", successPolicy={"rules": []})),
    _post(
        "job: failure policy with OnFailure",
        _JOBS,
        job(
            "j",
            {"restartPolicy": "OnFailure"},
            podFailurePolicy={
                "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]
            },
        ),
    ),
    _post("job: dots in name warn", _JOBS, job("a.b")),
    Case(
        "job: template is immutable",
        patch(
            f"{_JOBS}/j",
            {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}, "completions": 5}},
        ),
        (post(_JOBS, job("j")),),
    ),
    Case(
        "job: suspend",
        patch(f"{_JOBS}/j", {"spec": {"suspend": True, "parallelism": 2}}),
        (post(_JOBS, job("j")),),
    ),
    Case("job: orphaned by default warns", delete(f"{_JOBS}/j"), (post(_JOBS, job("j")),)),
    Case(
        "job: deleted in background",
        delete(f"{_JOBS}/j", {"propagationPolicy": "Background"}),
        (post(_JOBS, job("j")),),
    ),
    _post("cronjob: bad schedule", _CRONS, _cron(schedule="61 * * *")),
    _post("cronjob: bad time zone", _CRONS, _cron(timeZone="Mars/Base")),
    _post("cronjob: TZ in schedule", _CRONS, _cron(schedule="TZ=UTC * * * * *")),
    _post(
        "cronjob: bad policy",
        _CRONS,
        _cron(concurrencyPolicy="Some", startingDeadlineSeconds=-1, successfulJobsHistoryLimit=-1),
    ),
    _post("cronjob: empty schedule", _CRONS, _cron(schedule="")),
    _post("hpa: bad numbers", _HPAS, _hpa(minReplicas=0, maxReplicas=0)),
    _post("hpa: min over max", _HPAS, _hpa(minReplicas=5)),
    _post("hpa: bad metric", _HPAS, _hpa(metrics=[{"type": "Resource"}, {"type": "Odd"}])),
    _post(
        "pdb: both limits",
        f"{POLICY}/poddisruptionbudgets",
        pdb("b", minAvailable=1, maxUnavailable=1),
    ),
    _post("pdb: bad percentage", f"{POLICY}/poddisruptionbudgets", pdb("b", minAvailable="x%")),
    _post("pdb: negative", f"{POLICY}/poddisruptionbudgets", pdb("b", maxUnavailable=-1)),
    _post(
        "pdb: no selector",
        f"{POLICY}/poddisruptionbudgets",
        pdb("b", selector=None, minAvailable=1),
    ),
    _post(
        "pdb: bad policy",
        f"{POLICY}/poddisruptionbudgets",
        pdb("b", minAvailable=1, unhealthyPodEvictionPolicy="Never"),
    ),
)

_DELETION = (
    Case(
        "deployment delete: created again meanwhile",
        post(DEPLOYMENTS, deployment("d")),
        (_D, delete(_AT_D, {"propagationPolicy": "Foreground"})),
    ),
    Case(
        "deployment delete: foreground", delete(_AT_D, {"propagationPolicy": "Foreground"}), (_D,)
    ),
    Case("deployment delete: orphan", delete(_AT_D, {"propagationPolicy": "Orphan"}), (_D,)),
    Case(
        "deployment delete: background", delete(_AT_D, {"propagationPolicy": "Background"}), (_D,)
    ),
    Case("deployment delete: default", delete(_AT_D), (_D,)),
    Case("deployment delete: by query", delete(f"{_AT_D}?propagationPolicy=Foreground"), (_D,)),
    Case(
        "deployment delete: patched while deleting",
        patch(_AT_D, {"spec": {"replicas": 3}}),
        (_D, delete(_AT_D, {"propagationPolicy": "Foreground"})),
    ),
    Case(
        "deployment delete: again in background",
        delete(_AT_D, {"propagationPolicy": "Background"}),
        (_D, delete(_AT_D, {"propagationPolicy": "Foreground"})),
    ),
    Case(
        "deployment delete: collection in foreground",
        delete(DEPLOYMENTS, {"propagationPolicy": "Foreground"}),
        (_D,),
    ),
)

CASES = (*_DEPLOYMENT, *_SCALE, *_OTHERS, *_DELETION)
