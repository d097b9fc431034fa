"""The chart of deploy/ on one node of the test-bed: gpupool as pods, each with the chart's rights.

There is no network between pods here: all are on the loopback interface of the machine, once each.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpupool.contract.names import RESOURCE_GPU_MEM
from gpupool.hardware.simdriver import create_node
from testbed.cluster import Kubernetes
from testbed.gpu_images import GPUPOOL, write_gpu_images
from testbed.installation import CHART, NAMESPACE, helm_program
from testbed.node import DRIVER as NODE_DRIVER
from testbed.nvidia_ctk import DRIVER
from testbed.processes import free_port
from testbed.story import V100
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, allocatable, registered

NODE = "127.0.0.2"
DAEMON_SET = "gpushare-device-plugin-ds"


@pytest.fixture(scope="module")
def one_node(able: None) -> Iterator[Kubernetes]:
    """With one V100, and the image of gpupool. Whoever wants it says: kubernetes = one_node"""
    images = partial(write_gpu_images, with_gpupool=True)
    with Kubernetes(nodes=1, images=images) as running:
        for node in running.nodes:
            os.chmod(create_node(node.driver, node.name, [V100]).state, 0o666)
        yield running


def values(kubernetes: Kubernetes) -> dict[str, Any]:
    repository, _, tag = GPUPOOL.rpartition(":")
    port = free_port()
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "hostNetwork": True,
        "apiServer": {"host": "127.0.0.1", "port": int(kubernetes.plane.url.rpartition(":")[2])},
        "scheduler": {"replicas": 1},
        "admission": {"replicas": 1, "service": False, "host": "127.0.0.1", "port": port},
        "agent": {
            "simulated": f"{NODE_DRIVER}/state",
            "mounts": [f"{NODE_DRIVER}:{DRIVER}:rw"],
            "limiter": {"driverLibraries": f"{DRIVER}/lib"},
        },
    }


def helm(kubernetes: Kubernetes, *arguments: str) -> str:
    environment = os.environ | {"KUBECONFIG": str(kubernetes.plane.kubeconfig)}
    command = [str(helm_program()), *arguments, "--namespace", NAMESPACE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(kubernetes: Kubernetes, admin: Kubectl, file: Path, **more: Any) -> str:
    """What helm says, once the node shares its card. `file` keeps the values: ours and `more`."""
    file.write_text(json.dumps(values(kubernetes) | more))
    said = helm(kubernetes, "install", "gpupool", str(CHART), "-f", str(file), "--wait")
    admin("label", "node", NODE, "cgpu=true", "cgpu.disable.isolation=false")
    eventually(lambda: registered(admin), LONGEST_S)
    eventually(lambda: units(admin) == "15", LONGEST_S)
    return said


def units(kubectl: Kubectl) -> str:
    return allocatable(kubectl, NODE).get(RESOURCE_GPU_MEM, "0")


def token_of(admin: Kubectl, account: str, namespace: str = "default") -> str:
    """Of a service account, which is made if there is none."""
    inside = admin.within(namespace)
    inside.run("create", "serviceaccount", account)
    return inside("create", "token", account).strip()


def kubeconfig_of(
    kubernetes: Kubernetes, admin: Kubectl, folder: Path, account: str, namespace: str = "default"
) -> Path:
    """A file with which commands act as this service account."""
    file = folder / f"{account}.kubeconfig"
    file.touch(mode=0o600)
    token = token_of(admin, account, namespace)
    file.write_text(kubernetes.plane.kubeconfig_of(account, token))
    return file
