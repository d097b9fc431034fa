"""A cluster such as a GPU Operator leaves behind, of real parts: a node for each way of a card into
a container.

    with Kubernetes(nodes=len(NODES), runtimes=runtimes(), images=write_gpu_images) as kubernetes:
        with Installation(kubernetes, cards, injection=injection()) as installed:
            install_operator(installed)

NRI is on, CDI files are written by a stand-in for nvidia-ctk, NVIDIA's runtime is a stand-in that
runs runc, and so is NVIDIA's NRI plugin. The runtime class, and the pod by which the agent knows
that NVIDIA's plugin runs on its node, are the operator's by name and form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kubeclient.objects import Obj
from testbed.cluster import Kubernetes
from testbed.containerd_runtime import NVIDIA, Containerd
from testbed.images import BUSYBOX
from testbed.installation import (
    MOUNTS,
    NRI,
    NVIDIA_NRI,
    RUNTIME,
    RUNTIME_CLASS,
    Installation,
)
from testbed.nvidia_runtime import silent_of

NAMESPACE = "gpu-operator"
_BROKEN = "/broken"  # a file that makes the pod of NVIDIA's plugin not ready


class Place(NamedTuple):
    way: str
    runtime: Containerd


NODES = {
    "127.0.0.2": Place(RUNTIME, Containerd(runs_nvidia=True)),
    "127.0.0.3": Place(RUNTIME_CLASS, Containerd(is_v2=True, has_nvidia=True)),
    "127.0.0.4": Place(NVIDIA_NRI, Containerd(is_v2=True)),
    "127.0.0.5": Place(NRI, Containerd(is_v2=True)),
    "127.0.0.6": Place(NRI, Containerd()),
    "127.0.0.7": Place(MOUNTS, Containerd()),
}


def runtimes() -> list[Containerd]:
    return [place.runtime for place in NODES.values()]


def injection() -> dict[str, str]:
    return {node: place.way for node, place in NODES.items()}


def install_operator(installation: Installation) -> None:
    """What the operator's chart would have made."""
    plugins = [_toolkit(node) for node, place in NODES.items() if place.way == NVIDIA_NRI]
    objects = [_namespace(), _runtime_class(), *plugins]
    for made in objects:
        installation.kubectl("create", "-f", installation.file(json.dumps(made)))
    for pod in plugins:
        name = pod["metadata"]["name"]
        ready = ("wait", "--for=condition=Ready", f"pod/{name}", f"--namespace={NAMESPACE}")
        installation.kubectl(*ready, "--timeout=300s")


@contextmanager
def broken_plugin(installation: Installation, node: str) -> Iterator[None]:
    """The pod of NVIDIA's plugin on this node is not ready, for the length of the block."""
    inside = ("exec", _toolkit_name(node), f"--namespace={NAMESPACE}", "--", "/bin/busybox")
    installation.kubectl(*inside, "touch", _BROKEN)
    try:
        yield
    finally:
        installation.kubectl(*inside, "rm", _BROKEN)


@contextmanager
def silent_way(kubernetes: Kubernetes, installation: Installation, node: str) -> Iterator[None]:
    """Cards do not get into containers of this node, and nobody is told, for the length of the
    block."""
    if NODES[node].way == NVIDIA_NRI:
        installation.kill(f"nvidia-nri-{node}")
        try:
            yield
        finally:
            installation.start(f"nvidia-nri-{node}")
        return
    (folder,) = (each.folder for each in kubernetes.nodes if each.name == node)
    silent_of(folder).touch()
    try:
        yield
    finally:
        silent_of(folder).unlink()


def _namespace() -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _runtime_class() -> Obj:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": NVIDIA, "labels": {"app.kubernetes.io/component": "gpu-operator"}},
        "handler": NVIDIA,
    }


def _toolkit_name(node: str) -> str:
    return f"nvidia-container-toolkit-{node.replace('.', '-')}"


def _toolkit(node: str) -> Obj:
    """NVIDIA's plugin runs in it; here, it runs beside it (`nvidia_nri.py`)."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _toolkit_name(node),
            "namespace": NAMESPACE,
            "labels": {"app": "nvidia-container-toolkit-daemonset"},
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "nvidia-container-toolkit-ctr",
                    "image": BUSYBOX,
                    "command": ["/bin/sleep", "2147483647"],
                    "env": [{"name": "ENABLE_NRI_PLUGIN", "value": "true"}],
                    "readinessProbe": {
                        "exec": {"command": ["/bin/busybox", "test", "!", "-e", _BROKEN]},
                        "periodSeconds": 2,
                        "timeoutSeconds": 20,
                        "failureThreshold": 1,
                    },
                    "volumeMounts": [{"name": "nri-socket", "mountPath": "/run/nri"}],
                }
            ],
            "volumes": [{"name": "nri-socket", "hostPath": {"path": "/var/run/nri"}}],
        },
    }
