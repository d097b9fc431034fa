"""Minimal workloads for tests."""

from typing import Any

from kubeclient.objects import Obj


def template(app: str = "web", image: str = "nginx", **pod: Any) -> Obj:
    containers = [{"name": "c", "image": image}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **pod}}


def workload(name: str = "web", image: str = "nginx", **spec: Any) -> Obj:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, image),
            **spec,
        },
    }


def image(name: str) -> Obj:
    """A merge patch that changes the image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


def pod(name: str, app: str, **metadata: Any) -> Obj:
    labels = {"app": app}
    made = template(app)
    return {"metadata": {"name": name, "labels": labels, **metadata}, "spec": made["spec"]}
