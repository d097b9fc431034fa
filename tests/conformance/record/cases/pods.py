"""Pods: validation, and what may change afterwards."""

from __future__ import annotations

from tests.conformance.record.case import (
    STRATEGIC,
    Case,
    Json,
    patch,
    post,
)
from tests.conformance.record.objects import (
    PODS,
    container,
    gpu,
    obj,
    pod,
)

_P1 = post(PODS, pod("p1"), save="p1")
_AT_P1 = f"{PODS}/p1"


def _bad(name: str, body: Json) -> Case:
    return Case(f"pod: {name}", post(PODS, body))


_VALIDATION = (
    _bad("no containers", obj("v1", "Pod", "q", spec={})),
    _bad("no spec", obj("v1", "Pod", "q")),
    _bad("container without name and image", pod("q", {})),
    _bad("bad container name", pod("q", container("Bad_Name"))),
    _bad("two containers of one name", pod("q", container(), container())),
    _bad("bad quantity", pod("q", gpu("abc"))),
    _bad("negative quantity", pod("q", gpu(-1))),
    _bad("gpu request differs from limit", pod("q", gpu("2", "1"))),
    _bad(
        "gpu request without limit",
        pod("q", container(resources={"requests": {"nvidia.com/gpu": 1}})),
    ),
    _bad("gpu fraction", pod("q", gpu("500m"))),
    _bad(
        "shared gpu fraction",
        pod("q", container(resources={"limits": {"aliyun.com/gpu-mem": "1.5"}})),
    ),
    _bad("unqualified resource", pod("q", container(resources={"limits": {"gpu": 1}}))),
    _bad(
        "memory request over limit",
        pod("q", container(resources={"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}})),
    ),
    _bad(
        "fractional memory warns", pod("q", container(resources={"requests": {"memory": "1500m"}}))
    ),
    _bad("bad restartPolicy", pod("q", restartPolicy="Sometimes")),
    _bad("bad imagePullPolicy", pod("q", container(imagePullPolicy="Maybe"))),
    _bad("bad port", pod("q", container(ports=[{"containerPort": 0}, {"containerPort": 70000}]))),
    _bad(
        "duplicate port name",
        pod(
            "q",
            container(ports=[{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]),
        ),
    ),
    _bad(
        "duplicate port warns",
        pod("q", container(ports=[{"containerPort": 1}, {"containerPort": 1}])),
    ),
    _bad("bad env name", pod("q", container(env=[{"name": "a=b", "value": "x"}]))),
    _bad(
        "duplicate env warns",
        pod("q", container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])),
    ),
    _bad(
        "env value and valueFrom",
        pod(
            "q",
            container(
                env=[
                    {
                        "name": "A",
                        "value": "1",
                        "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                    }
                ]
            ),
        ),
    ),
    _bad(
        "env bad fieldPath",
        pod(
            "q",
            container(
                env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.foo"}}}]
            ),
        ),
    ),
    _bad(
        "mount of unknown volume",
        pod("q", container(volumeMounts=[{"name": "v", "mountPath": "/v"}])),
    ),
    _bad(
        "two mounts at one path",
        pod(
            "q",
            container(
                volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]
            ),
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
    ),
    _bad(
        "volume with two sources",
        pod("q", volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
    ),
    _bad("duplicate volume", pod("q", volumes=[{"name": "v"}, {"name": "v"}])),
    _bad("bad toleration", pod("q", tolerations=[{"operator": "Equal", "effect": "Some"}])),
    _bad(
        "toleration seconds without NoExecute",
        pod(
            "q",
            tolerations=[
                {"key": "a", "operator": "Exists", "tolerationSeconds": 3, "effect": "NoSchedule"}
            ],
        ),
    ),
    _bad(
        "bad affinity",
        pod(
            "q",
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "a", "operator": "Within", "values": ["b"]}
                                ]
                            }
                        ]
                    }
                }
            },
        ),
    ),
    _bad("bad nodeSelector", pod("q", nodeSelector={"a b": "c d"})),
    _bad("probe without handler", pod("q", container(livenessProbe={"periodSeconds": -1}))),
    _bad(
        "liveness successThreshold",
        pod("q", container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2})),
    ),
    _bad(
        "hostNetwork port differs",
        pod("q", container(ports=[{"containerPort": 1, "hostPort": 2}]), hostNetwork=True),
    ),
    _bad("unknown priority class", pod("q", priorityClassName="absent")),
    _bad("priority sent", pod("q", priority=5)),
    _bad("unknown runtime class", pod("q", runtimeClassName="absent")),
    _bad("unknown service account", pod("q", serviceAccountName="absent")),
    _bad("negative grace period", pod("q", terminationGracePeriodSeconds=-1)),
    _bad("zero deadline", pod("q", activeDeadlineSeconds=0)),
    _bad("duplicate gate", pod("q", schedulingGates=[{"name": "a"}, {"name": "a"}])),
    _bad("gate with node", pod("q", schedulingGates=[{"name": "a"}], nodeName="n")),
    _bad(
        "spread without key",
        pod(
            "q",
            topologySpreadConstraints=[
                {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "No"}
            ],
        ),
    ),
    _bad("long name", pod("n" * 254)),
    _bad(
        "generateName",
        obj(
            "v1",
            "Pod",
            "",
            metadata={"name": None, "generateName": "gen-"},
            spec={"containers": [container()]},
        ),
    ),
    _bad("ephemeral containers at create", pod("q", ephemeralContainers=[container("e")])),
    _bad("claim not declared", pod("q", container(resources={"claims": [{"name": "g"}]}))),
)

_CHANGES = (
    Case("pod: created", post(PODS, pod("p1", gpu(1)))),
    Case(
        "pod: nodeSelector is immutable",
        patch(_AT_P1, {"spec": {"nodeSelector": {"a": "b"}}}),
        (_P1,),
    ),
    Case(
        "pod: env is immutable",
        patch(
            _AT_P1,
            {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}},
            STRATEGIC,
        ),
        (_P1,),
    ),
    Case(
        "pod: resources are immutable",
        patch(
            _AT_P1,
            {
                "spec": {
                    "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
                }
            },
            STRATEGIC,
        ),
        (_P1,),
    ),
    Case(
        "pod: image changes",
        patch(_AT_P1, {"spec": {"containers": [{"name": "c", "image": "other:1"}]}}, STRATEGIC),
        (_P1,),
    ),
    Case(
        "pod: container added",
        patch(_AT_P1, {"spec": {"containers": [container("d")]}}, STRATEGIC),
        (_P1,),
    ),
    Case(
        "pod: toleration added",
        patch(_AT_P1, {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, STRATEGIC),
        (_P1,),
    ),
    Case("pod: nodeName by patch", patch(_AT_P1, {"spec": {"nodeName": "n"}}), (_P1,)),
    Case(
        "pod: gate removed",
        patch(_AT_P1, {"spec": {"schedulingGates": []}}),
        (post(PODS, pod("p1", schedulingGates=[{"name": "a/b"}])),),
    ),
    Case(
        "pod: gate added", patch(_AT_P1, {"spec": {"schedulingGates": [{"name": "a/b"}]}}), (_P1,)
    ),
    Case(
        "pod: status on main resource ignored",
        patch(_AT_P1, {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}),
        (_P1,),
    ),
    Case(
        "pod: status",
        patch(
            f"{_AT_P1}/status",
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            STRATEGIC,
        ),
        (_P1,),
    ),
    Case(
        "pod: status ignores spec",
        patch(f"{_AT_P1}/status", {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}),
        (_P1,),
    ),
    Case(
        "pod: status merges conditions",
        patch(
            f"{_AT_P1}/status",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            STRATEGIC,
        ),
        (
            _P1,
            patch(
                f"{_AT_P1}/status",
                {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}},
                STRATEGIC,
            ),
        ),
    ),
    Case(
        "pod: debug container",
        patch(
            f"{_AT_P1}/ephemeralcontainers",
            {"spec": {"ephemeralContainers": [container("debug", targetContainerName="c")]}},
            STRATEGIC,
        ),
        (_P1,),
    ),
    Case(
        "pod: debug container with ports",
        patch(
            f"{_AT_P1}/ephemeralcontainers",
            {"spec": {"ephemeralContainers": [container("debug", ports=[{"containerPort": 1}])]}},
            STRATEGIC,
        ),
        (_P1,),
    ),
    Case(
        "pod: resize",
        patch(
            f"{_AT_P1}/resize",
            {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}},
            STRATEGIC,
        ),
        (post(PODS, pod("p1", container(resources={"requests": {"cpu": "1"}}))),),
    ),
)

CASES = (
    *_VALIDATION,
    *_CHANGES,
)
