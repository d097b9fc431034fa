"""Pods for a real node: its containers wait, and can be looked into."""

import os

from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import RESOURCE_GPU_MEM
from kubeclient.objects import Obj
from testbed.gpu_images import GPU
from tests.e2e.kubectl import Kubectl

IMAGE = os.environ.get("GPUPOOL_TEST_IMAGE", GPU)
UNITS_PER_CARD, MIB_PER_CARD = 15, 16130  # of testbed.story.V100
_TELL = "env; echo limits:; cat /etc/gpupool/limits; nvidia-smi; exec sleep 2147483647"


def gpu_pod(name: str, resource: str, amount: int, **spec: object) -> Obj:
    container = {"name": "main", "image": IMAGE, "resources": {"limits": {resource: amount}}}
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


def telling(name: str, units: int) -> Obj:
    pod = gpu_pod(name, RESOURCE_GPU_MEM, units)
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", _TELL]
    return pod


def is_ready(pod: Obj) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def mismatches(kubectl: Kubectl, pod: Obj) -> list[str]:
    """What the container saw that is not what its annotation says."""
    name = pod["metadata"]["name"]
    (share,) = pod_allocation(pod).containers[0].shares
    told, _, rest = kubectl("logs", name).partition("limits:\n")
    env = variables(told)
    units = int(pod["spec"]["containers"][0]["resources"]["limits"][RESOURCE_GPU_MEM])
    limit = units * MIB_PER_CARD // UNITS_PER_CARD
    wanted = {
        "units": (share.units, units),
        "cards": (env.get("NVIDIA_VISIBLE_DEVICES"), share.uuid),
        "index": (env.get("ALIYUN_COM_GPU_MEM_IDX"), str(share.index)),
        "size": (env.get("ALIYUN_COM_GPU_MEM_CONTAINER"), str(units)),
        "limit file": (rest.splitlines()[0], f"{share.uuid} {limit} 0"),
        "limiter": (f"/ {limit:>6}MiB |" in rest, True),
    }
    return [f"{name}: {what}: {found}" for what, found in wanted.items() if found[0] != found[1]]
