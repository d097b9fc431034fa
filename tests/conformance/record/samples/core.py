"""Core objects other than pods: services, configuration, nodes."""

from __future__ import annotations

from tests.conformance.record.case import Json
from tests.conformance.record.objects import container, obj, service
from tests.conformance.record.samples.sample import Sample, named

_CORE = "/api/v1/namespaces/{ns}"


def _core(label: str, resource: str, body: Json) -> Sample:
    return Sample(label, f"{_CORE}/{resource}", body)


def _apart(label: str, resource: str, body: Json) -> Sample:
    """Not among the other samples, because it would change them."""
    return Sample(label, f"/api/v1/namespaces/sample-namespace/{resource}", body)


def _service(label: str, **spec: Json) -> Sample:
    return _core(f"Service-{label}", "services", service(f"service-{label}", **spec))


def _node(label: str, **parts: Json) -> Sample:
    return Sample(f"Node-{label}", "/api/v1/nodes", obj("v1", "Node", f"node-{label}", **parts))


_SERVICES = (
    _service("clusterip"),
    _service("headless", clusterIP="None"),
    _service("headless-bare", clusterIP="None", ports=None, selector=None),
    _service("nodeport", type="NodePort"),
    _service(
        "loadbalancer",
        type="LoadBalancer",
        ports=[
            {"name": "a", "port": 80, "targetPort": "web"},
            {"name": "b", "port": 53, "protocol": "UDP"},
        ],
    ),
    _service(
        "loadbalancer-local",
        type="LoadBalancer",
        externalTrafficPolicy="Local",
        allocateLoadBalancerNodePorts=False,
    ),
    _service(
        "externalname", type="ExternalName", externalName="example.com", ports=None, selector=None
    ),
    _service(
        "affinity",
        sessionAffinity="ClientIP",
        externalIPs=["1.2.3.4"],
        publishNotReadyAddresses=True,
    ),
    _service("dual", ipFamilyPolicy="PreferDualStack"),
)

_CONFIG = (
    Sample("Namespace", "/api/v1/namespaces", obj("v1", "Namespace", "sample-namespace")),
    _core(
        "ConfigMap",
        "configmaps",
        obj(
            "v1",
            "ConfigMap",
            "configmap",
            data={"a": "1"},
            binaryData={"b": "AAE="},
            immutable=False,
        ),
    ),
    _core(
        "Secret-opaque",
        "secrets",
        obj("v1", "Secret", "secret", stringData={"a": "b"}, data={"c": "ZA=="}),
    ),
    _core(
        "Secret-tls",
        "secrets",
        obj(
            "v1",
            "Secret",
            "secret-tls",
            type="kubernetes.io/tls",
            data={"tls.crt": "", "tls.key": ""},
        ),
    ),
    _core("ServiceAccount", "serviceaccounts", obj("v1", "ServiceAccount", "sa")),
    _apart(
        "LimitRange",
        "limitranges",
        obj(
            "v1",
            "LimitRange",
            "lr",
            spec={
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2"},
                        "min": {"cpu": "10m"},
                        "default": {"memory": "1Gi"},
                    },
                    {"type": "Pod", "max": {"memory": "8Gi"}},
                ]
            },
        ),
    ),
    _apart(
        "ResourceQuota",
        "resourcequotas",
        obj(
            "v1",
            "ResourceQuota",
            "rq",
            spec={"hard": {"requests.nvidia.com/gpu": 100, "pods": "1000", "limits.cpu": "1k"}},
        ),
    ),
    _apart(
        "ResourceQuota-scoped",
        "resourcequotas",
        obj("v1", "ResourceQuota", "rqs", spec={"hard": {"pods": 900}, "scopes": ["BestEffort"]}),
    ),
    _core(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        obj(
            "v1",
            "PersistentVolumeClaim",
            "pvc",
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
    ),
    Sample(
        "PersistentVolume",
        "/api/v1/persistentvolumes",
        obj(
            "v1",
            "PersistentVolume",
            "pv",
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/data"},
            },
        ),
    ),
    _core(
        "Endpoints",
        "endpoints",
        obj(
            "v1",
            "Endpoints",
            "ep",
            subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}],
        ),
    ),
    _core(
        "PodTemplate",
        "podtemplates",
        obj(
            "v1",
            "PodTemplate",
            "pt",
            template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}},
        ),
    ),
    _core(
        "Event",
        "events",
        obj(
            "v1",
            "Event",
            "event",
            type="Normal",
            reason="Started",
            message="Started container c",
            involvedObject={
                "kind": "Pod",
                "namespace": "{ns}",
                "name": "p",
                "fieldPath": "spec.containers{c}",
            },
            source={"component": "kubelet", "host": "node-1"},
            count=2,
            firstTimestamp="2026-01-01T00:00:00Z",
            lastTimestamp="2026-01-01T00:01:00Z",
        ),
    ),
    named(
        "Event-new",
        "namespaces/{ns}/events",
        "events.k8s.io/v1",
        "Event",
        type="Warning",
        reason="FailedScheduling",
        note="0/1 nodes are available.",
        action="Scheduling",
        eventTime="2026-01-01T00:00:00.000001Z",
        reportingController="gpupool-scheduler",
        reportingInstance="gpupool-scheduler-0",
        regarding={"kind": "Pod", "namespace": "{ns}", "name": "p"},
    ),
)

_NODES = (
    _node("minimal"),
    _node(
        "gpu",
        spec={
            "podCIDR": "10.244.0.0/24",
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
            "unschedulable": True,
        },
        metadata={"labels": {"node-role.kubernetes.io/gpu": "", "cgpu": "true"}},
        status={
            "capacity": {"cpu": 8, "memory": "64Gi", "nvidia.com/gpu": 4, "pods": "110"},
            "addresses": [
                {"type": "InternalIP", "address": "10.9.9.9"},
                {"type": "Hostname", "address": "node-gpu"},
            ],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {
                "kubeletVersion": "v1.35.8",
                "osImage": "Debian",
                "kernelVersion": "6.1",
                "containerRuntimeVersion": "sim://1",
            },
        },
    ),
)

SAMPLES = (*_SERVICES, *_CONFIG, *_NODES)
