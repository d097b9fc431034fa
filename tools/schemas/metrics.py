"""Definitions of metrics.k8s.io/v1beta1, which kube-apiserver itself does not serve."""

from __future__ import annotations

from typing import Any

_PACKAGE = "io.k8s.metrics.pkg.apis.metrics.v1beta1"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_TYPE_META = {
    "apiVersion": {
        "description": "The version of this representation of the object.",
        "type": "string",
    },
    "kind": {"description": "The kind of the object.", "type": "string"},
}
_SAMPLE = {
    "metadata": {"$ref": f"{_META}.ObjectMeta"},
    "timestamp": {
        "description": "When the usage was measured: the end of the window.",
        "$ref": f"{_META}.Time",
    },
    "window": {
        "description": "The length of time over which the usage was measured.",
        "$ref": f"{_META}.Duration",
    },
}
_USAGE = {
    "description": "What was used, by resource: cpu, memory.",
    "type": "object",
    "additionalProperties": {"$ref": "io.k8s.apimachinery.pkg.api.resource.Quantity"},
}


def _gvk(kind: str) -> list[dict[str, str]]:
    return [{"group": "metrics.k8s.io", "kind": kind, "version": "v1beta1"}]


def _list_of(kind: str) -> dict[str, Any]:
    return {
        "description": f"A list of {kind}.",
        "type": "object",
        "required": ["metadata", "items"],
        "properties": {
            **_TYPE_META,
            "metadata": {"$ref": f"{_META}.ListMeta"},
            "items": {"type": "array", "items": {"$ref": f"{_PACKAGE}.{kind}"}},
        },
        "x-kubernetes-group-version-kind": _gvk(f"{kind}List"),
    }


METRICS_DEFINITIONS: dict[str, dict[str, Any]] = {
    f"{_META}.Duration": {"description": 'A span of time such as "30s".', "type": "string"},
    f"{_PACKAGE}.ContainerMetrics": {
        "description": "What one container used.",
        "type": "object",
        "required": ["name", "usage"],
        "properties": {
            "name": {"description": "The container's name in the pod.", "type": "string"},
            "usage": _USAGE,
        },
    },
    f"{_PACKAGE}.NodeMetrics": {
        "description": "What one node used.",
        "type": "object",
        "required": ["timestamp", "window", "usage"],
        "properties": {**_TYPE_META, **_SAMPLE, "usage": _USAGE},
        "x-kubernetes-group-version-kind": _gvk("NodeMetrics"),
    },
    f"{_PACKAGE}.NodeMetricsList": _list_of("NodeMetrics"),
    f"{_PACKAGE}.PodMetrics": {
        "description": "What the containers of one pod used.",
        "type": "object",
        "required": ["timestamp", "window", "containers"],
        "properties": {
            **_TYPE_META,
            **_SAMPLE,
            "containers": {
                "description": "Measured in the same window.",
                "type": "array",
                "items": {"$ref": f"{_PACKAGE}.ContainerMetrics"},
            },
        },
        "x-kubernetes-group-version-kind": _gvk("PodMetrics"),
    },
    f"{_PACKAGE}.PodMetricsList": _list_of("PodMetrics"),
}
METRICS_RESOURCES = [
    {
        "resource": "nodes",
        "responseKind": {"group": "", "version": "", "kind": "NodeMetrics"},
        "scope": "Cluster",
        "singularResource": "",
        "verbs": ["get", "list"],
    },
    {
        "resource": "pods",
        "responseKind": {"group": "", "version": "", "kind": "PodMetrics"},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": ["get", "list"],
    },
]
