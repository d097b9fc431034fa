"""Small objects that many cases start from, and the paths where they live."""

from __future__ import annotations

from typing import Any

from tests.conformance.record.case import Json

NS = "/api/v1/namespaces/{ns}"
CONFIGMAPS = f"{NS}/configmaps"
PODS = f"{NS}/pods"
SERVICES = f"{NS}/services"
APPS = "/apis/apps/v1/namespaces/{ns}"
DEPLOYMENTS = f"{APPS}/deployments"
BATCH = "/apis/batch/v1/namespaces/{ns}"
POLICY = "/apis/policy/v1/namespaces/{ns}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def obj(api_version: str, kind: str, name: str, **parts: Json) -> dict[str, Json]:
    metadata = {"name": name} | parts.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | parts


def configmap(name: str, data: Json = None, **parts: Json) -> dict[str, Json]:
    return obj("v1", "ConfigMap", name, data={"a": "1"} if data is None else data, **parts)


def container(name: str = "c", **more: Json) -> dict[str, Json]:
    return {"name": name, "image": "busybox:1.36"} | more


def pod(name: str, *containers: Json, metadata: Json = None, **spec: Json) -> dict[str, Json]:
    inside = {"containers": list(containers) or [container()]} | spec
    return obj("v1", "Pod", name, metadata=metadata or {}, spec=inside)


def gpu(limit: Json, request: Json = None) -> dict[str, Json]:
    resources = {"limits": {"nvidia.com/gpu": limit}}
    if request is not None:
        resources["requests"] = {"nvidia.com/gpu": request}
    return container(resources=resources)


def template(labels: Json = None, **spec: Json) -> dict[str, Json]:
    return {
        "metadata": {"labels": labels or {"app": "x"}},
        "spec": {"containers": [container()]} | spec,
    }


def workload(kind: str, name: str, **spec: Json) -> dict[str, Json]:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet whose selector fits its template."""
    inside: dict[str, Any] = {"selector": {"matchLabels": {"app": "x"}}, "template": template()}
    return obj("apps/v1", kind, name, spec=inside | spec)


def deployment(name: str, **spec: Json) -> dict[str, Json]:
    return workload("Deployment", name, **({"replicas": 0} | spec))


def service(name: str, **spec: Json) -> dict[str, Json]:
    inside = {"selector": {"app": "x"}, "ports": [{"port": 80}]} | spec
    return obj("v1", "Service", name, spec=inside)


def job(name: str, template_spec: Json = None, **spec: Json) -> dict[str, Json]:
    inner = {"restartPolicy": "Never", "containers": [container()]} | (template_spec or {})
    return obj("batch/v1", "Job", name, spec={"template": {"spec": inner}} | spec)


def pdb(name: str, **spec: Json) -> dict[str, Json]:
    inside = {"selector": {"matchLabels": {"app": "x"}}} | spec
    return obj("policy/v1", "PodDisruptionBudget", name, spec=inside)


def binding(name: str, node: str, **metadata: Json) -> dict[str, Json]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return obj("v1", "Binding", name, metadata=metadata, target=target)


def eviction(name: str, **parts: Json) -> dict[str, Json]:
    return obj("policy/v1", "Eviction", name, **parts)


def crd(plural: str, kind: str, schema: Json, *, group: str, **version: Json) -> dict[str, Json]:
    inside = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
            }
            | version
        ],
    }
    kind_name = "CustomResourceDefinition"
    return obj("apiextensions.k8s.io/v1", kind_name, f"{plural}.{group}", spec=inside)
