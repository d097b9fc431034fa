"""Objects in states that a kubelet or a controller would bring them to, for their printed rows."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.record.case import Json
from tests.conformance.record.objects import container, deployment, job, obj, pod, workload

_NS = "/api/v1/namespaces/samples"
_PODS = f"{_NS}/pods"
_APPS = "/apis/apps/v1/namespaces/samples"
_JOBS = "/apis/batch/v1/namespaces/samples/jobs"
_THEN = "2026-01-01T00:00:00Z"
_LATER = "2026-01-01T00:02:03Z"


@dataclass(frozen=True)
class State:
    path: str
    body: Json
    status: Json = None
    deleted: bool = False


def _running(ready: bool = True, restarts: int = 0, name: str = "c", **more: Json) -> Json:
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "image": "x",
        "imageID": "",
        "state": {"running": {"startedAt": _THEN}},
    } | more


def _waiting(reason: str, restarts: int = 0, name: str = "c", **more: Json) -> Json:
    return {
        "name": name,
        "ready": False,
        "restartCount": restarts,
        "image": "x",
        "imageID": "",
        "state": {"waiting": {"reason": reason}},
    } | more


def _ended(code: int, reason: str = "", name: str = "c", signal: int = 0) -> Json:
    ended: dict[str, Json] = {"exitCode": code, "startedAt": _THEN, "finishedAt": _LATER}
    ended |= {"reason": reason} if reason else {}
    ended |= {"signal": signal} if signal else {}
    return {
        "name": name,
        "ready": False,
        "restartCount": 0,
        "image": "x",
        "imageID": "",
        "state": {"terminated": ended},
    }


def _pod(name: str, status: Json, deleted: bool = False, **spec: Json) -> State:
    body = pod(f"state-{name}", **({"nodeName": "node-1"} | spec))
    return State(_PODS, body, {"hostIP": "10.9.9.9"} | status, deleted)


_READY = [{"type": "Ready", "status": "True"}]
_TWO: dict[str, Json] = {"containers": [container(), container("d")]}
_FIRST: dict[str, Json] = {"initContainers": [container("i"), container("j")]}
_SIDE: dict[str, Json] = {"initContainers": [container("s", restartPolicy="Always")]}

_PODS_SEEN = (
    _pod(
        "running",
        {
            "phase": "Running",
            "podIP": "10.1.1.1",
            "podIPs": [{"ip": "10.1.1.1"}],
            "conditions": _READY,
            "containerStatuses": [_running()],
        },
    ),
    _pod(
        "half-ready",
        {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [_running(), _running(False, name="d")],
        },
        **_TWO,
    ),
    _pod("creating", {"phase": "Pending", "containerStatuses": [_waiting("ContainerCreating")]}),
    _pod("image", {"phase": "Pending", "containerStatuses": [_waiting("ImagePullBackOff")]}),
    _pod(
        "crashing",
        {
            "phase": "Running",
            "containerStatuses": [
                _waiting(
                    "CrashLoopBackOff",
                    5,
                    lastState={
                        "terminated": {"exitCode": 1, "startedAt": _THEN, "finishedAt": _LATER}
                    },
                )
            ],
        },
    ),
    _pod("completed", {"phase": "Succeeded", "containerStatuses": [_ended(0, "Completed")]}),
    _pod(
        "completed-and-running",
        {
            "phase": "Running",
            "conditions": _READY,
            "containerStatuses": [_ended(0, "Completed"), _running(name="d")],
        },
        **_TWO,
    ),
    _pod(
        "completed-and-unready",
        {"phase": "Running", "containerStatuses": [_ended(0, "Completed"), _running(name="d")]},
        **_TWO,
    ),
    _pod("error", {"phase": "Failed", "containerStatuses": [_ended(1, "Error")]}),
    _pod("oom", {"phase": "Failed", "containerStatuses": [_ended(137, "OOMKilled")]}),
    _pod("exit-code", {"phase": "Failed", "containerStatuses": [_ended(3)]}),
    _pod("signal", {"phase": "Failed", "containerStatuses": [_ended(137, signal=9)]}),
    _pod("evicted", {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
    _pod("node-lost", {"phase": "Running", "reason": "NodeLost"}, deleted=True),
    _pod("terminating", {"phase": "Running", "containerStatuses": [_running()]}, deleted=True),
    _pod("unknown", {"phase": "Unknown"}),
    _pod(
        "init-waiting",
        {
            "phase": "Pending",
            "initContainerStatuses": [
                _waiting("PodInitializing", name="i"),
                _waiting("PodInitializing", name="j"),
            ],
            "containerStatuses": [_waiting("PodInitializing")],
        },
        **_FIRST,
    ),
    _pod(
        "init-running",
        {
            "phase": "Pending",
            "initContainerStatuses": [_ended(0, "Completed", "i"), _running(name="j")],
        },
        **_FIRST,
    ),
    _pod(
        "init-error",
        {"phase": "Pending", "initContainerStatuses": [_ended(1, "Error", "i")]},
        **_FIRST,
    ),
    _pod(
        "init-exit-code",
        {"phase": "Pending", "initContainerStatuses": [_ended(2, name="i")]},
        **_FIRST,
    ),
    _pod(
        "init-crashing",
        {"phase": "Pending", "initContainerStatuses": [_waiting("CrashLoopBackOff", 3, "i")]},
        **_FIRST,
    ),
    _pod(
        "sidecar",
        {
            "phase": "Running",
            "conditions": _READY,
            "initContainerStatuses": [_running(name="s", started=True)],
            "containerStatuses": [_running()],
        },
        **_SIDE,
    ),
    _pod(
        "scheduling-gated",
        {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
            ],
        },
        nodeName="",
        schedulingGates=[{"name": "example.com/wait"}],
    ),
    _pod("nominated", {"phase": "Pending", "nominatedNodeName": "node-2"}, nodeName=""),
    _pod(
        "readiness-gate",
        {
            "phase": "Running",
            "containerStatuses": [_running()],
            "conditions": [{"type": "example.com/a", "status": "True"}],
        },
        readinessGates=[{"conditionType": "example.com/a"}, {"conditionType": "example.com/b"}],
    ),
)

_JOB_DONE = [
    {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": _LATER},
    {"type": "Complete", "status": "True", "lastTransitionTime": _LATER},
]
_JOB_FAILED = [
    {"type": "FailureTarget", "status": "True", "lastTransitionTime": _LATER},
    {"type": "Failed", "status": "True", "lastTransitionTime": _LATER},
]

_OTHERS = (
    State(
        f"{_APPS}/deployments",
        deployment("state-rolling", replicas=4),
        {"replicas": 5, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3},
    ),
    State(
        f"{_APPS}/statefulsets",
        workload("StatefulSet", "state-sts", replicas=3),
        {"replicas": 3, "readyReplicas": 2},
    ),
    State(
        f"{_APPS}/replicasets",
        workload("ReplicaSet", "state-rs", replicas=3),
        {"replicas": 3, "readyReplicas": 1},
    ),
    State(
        f"{_APPS}/daemonsets",
        workload("DaemonSet", "state-ds"),
        {
            "desiredNumberScheduled": 3,
            "currentNumberScheduled": 3,
            "numberReady": 2,
            "updatedNumberScheduled": 1,
            "numberAvailable": 2,
            "numberMisscheduled": 0,
        },
    ),
    State(
        _JOBS,
        job("state-done"),
        {
            "startTime": _THEN,
            "completionTime": _LATER,
            "succeeded": 1,
            "conditions": _JOB_DONE,
            "uncountedTerminatedPods": {},
        },
    ),
    State(
        _JOBS,
        job("state-failed"),
        {"startTime": _THEN, "failed": 1, "conditions": _JOB_FAILED, "uncountedTerminatedPods": {}},
    ),
    State(_JOBS, job("state-active", parallelism=3), {"startTime": _THEN, "active": 1}),
    State(
        "/api/v1/nodes",
        obj("v1", "Node", "state-down"),
        {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    ),
    State(
        f"{_NS}/resourcequotas",
        obj(
            "v1",
            "ResourceQuota",
            "state-quota",
            spec={"hard": {"pods": 1000, "limits.memory": "4Ti", "requests.nvidia.com/gpu": 64}},
        ),
        {
            "hard": {"pods": "1000", "limits.memory": "4Ti", "requests.nvidia.com/gpu": "64"},
            "used": {"pods": "3", "limits.memory": "0", "requests.nvidia.com/gpu": "2"},
        },
    ),
    State("/api/v1/namespaces", obj("v1", "Namespace", "state-terminating"), None, deleted=True),
    State(
        f"{_NS}/services",
        obj(
            "v1",
            "Service",
            "state-balanced",
            spec={"type": "LoadBalancer", "ports": [{"port": 80}]},
        ),
        {"loadBalancer": {"ingress": [{"ip": "5.6.7.8"}, {"hostname": "h.example.com"}]}},
    ),
    State(
        f"{_NS}/persistentvolumeclaims",
        obj(
            "v1",
            "PersistentVolumeClaim",
            "state-bound",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "volumeName": "pv",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        ),
        {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}},
    ),
)

STATES = (*_PODS_SEEN, *_OTHERS)
