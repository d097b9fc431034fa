"""Small objects that the tests give to the clients."""

from typing import Any

from kubeclient.objects import Obj

LABELS = {"app": "web"}


def container(name: str = "web", image: str = "nginx:1", **more: Any) -> Obj:
    return {"name": name, "image": image, **more}


def shell(script: str, name: str = "main", **more: Any) -> Obj:
    """A container that runs a script of the shell."""
    return container(name, "busybox", command=["sh", "-c", script], **more)


def pod(name: str, *containers: Obj, labels: Obj = LABELS, **spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def template(*containers: Obj, annotations: Obj | None = None, **spec: Any) -> Obj:
    metadata: Obj = {"labels": LABELS}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": list(containers) or [container()], **spec}}


def workload(kind: str, name: str, replicas: int | None = 1, **spec: Any) -> Obj:
    """A Deployment, ReplicaSet, StatefulSet or (without replicas) DaemonSet."""
    full: Obj = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
    if replicas is not None:
        full["replicas"] = replicas
    if kind == "StatefulSet":
        full.setdefault("serviceName", name)
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": full}


def deployment(name: str, replicas: int = 1, **spec: Any) -> Obj:
    return workload("Deployment", name, replicas, **spec)


def config_map(name: str, labels: Obj | None = None, **data: str) -> Obj:
    metadata: Obj = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def service(name: str, port: int = 80, **spec: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": LABELS, "ports": [{"port": port}], **spec},
    }


def budget(name: str, **spec: Any) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
    }
