"""Pods for a real node: its containers wait, and can be looked into."""

from gpupool.contract.objects import Obj
from testbed.gpu_images import GPU


def gpu_pod(name: str, resource: str, amount: int, **spec: object) -> Obj:
    container = {"name": "main", "image": GPU, "resources": {"limits": {resource: amount}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [container],
            **spec,
        },
    }


def variables(text: str) -> dict[str, str]:
    """What `env` prints."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
