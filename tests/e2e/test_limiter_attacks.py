"""Manifests that try to switch the limiter off, with real containers of the local cluster.

First with admission, which refuses what it can see. Then with admission's webhooks gone and pods
that passed it before, as a pod would come whose links admission cannot see: the limiter gives no
memory to a container whose limit file is not the one of the node.
"""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.kubectl import Kubectl, eventually, stream_of
from tests.e2e.limiter_attacks import (
    INSIDE,
    OVER,
    SHARE_MIB,
    TAKE,
    Change,
    empty,
    forged_files,
    message,
    mount,
)
from tests.e2e.test_resize import POOLS, shared

pytestmark = pytest.mark.kubectl

WRITE = 'echo unlimited > /etc/gpupool/limits; exec python -c "$0"'


def attempt(name: str, change: Change | None = None) -> Obj:
    """A pod with 1 unit that runs TAKE, and is changed in its spec and its container."""
    made = shared(name, 1, "sh", "-c", WRITE, TAKE)
    made["spec"]["restartPolicy"] = "Never"
    if change:
        change(made["spec"], made["spec"]["containers"][0])
    return made


LIMITS, CONF = {"subPath": "limits"}, {"subPath": "limiter.conf"}
# What the pod names; and the file about which the limiter complains.
FILES = {
    "message": (message("/etc/gpupool/limits"), "/etc/gpupool/limits"),
    "message-dots": (message("/etc/../etc/gpupool/limits"), "/etc/gpupool/limits"),
    "message-proc": (message("/proc/self/root/etc/gpupool/limits"), "/etc/gpupool/limits"),
    "file": (mount("/etc/gpupool/limits", **LIMITS), "/etc/gpupool/limits"),
    "file-proc": (mount("/proc/self/root/etc/gpupool/limits", **LIMITS), "/etc/gpupool/limits"),
    "directory": (mount("/etc/./gpupool"), "/etc/gpupool/limits"),
    "above": (empty("/etc"), "/etc/gpupool/limits"),
    "settings": (
        mount("/usr/local/gpupool/limiter.conf", **CONF),
        "/usr/local/gpupool/limiter.conf",
    ),
}


IN_PROC = ("message-proc", "file-proc")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(
    cluster: Cluster, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    made = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    labelled = ("get", "nodes", "-l", "aliyun.accelerator/nvidia_name", "-o", "name")
    eventually(lambda: len(made(*labelled).split()) == 2, within_s=60)
    made.apply(forged_files())
    return made


@pytest.fixture(scope="module")
def without_webhooks(kubectl: Kubectl) -> Callable[[Obj], Obj]:
    """Makes what admission would make of a pod, and ends admission for the rest of this file."""
    template = stream_of(attempt("template"))
    admitted = json.loads(
        kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=template)
    )
    both = "mutatingwebhookconfiguration,validatingwebhookconfiguration"
    kubectl("delete", both, "gpupool-admission")

    def passed(pod: Obj) -> Obj:
        made, like = copy.deepcopy(pod), copy.deepcopy(admitted["spec"])
        spec, container = made["spec"], made["spec"]["containers"][0]
        spec["schedulerName"] = like["schedulerName"]
        ours = [each for each in like["volumes"] if each["name"].startswith("gpupool-")]
        spec["volumes"] = [*spec.get("volumes", ()), *ours]
        mounts = [m for m in like["containers"][0]["volumeMounts"] if "gpupool-" in m["name"]]
        container["volumeMounts"] = [*mounts, *container.get("volumeMounts", ())]
        container["env"] = like["containers"][0]["env"]
        return made

    return passed


def said(kubectl: Kubectl, name: str) -> str:
    kubectl.wait("jsonpath={.status.phase}=Succeeded", f"pod/{name}", within_s=60)
    return kubectl("logs", name)


def test_an_honest_pod_gets_its_share(kubectl: Kubectl) -> None:
    kubectl.apply(attempt("honest"))
    output = said(kubectl, "honest")
    assert "Read-only file system" in output
    assert f"0 0 2 {SHARE_MIB}" in output.splitlines()


@pytest.mark.parametrize("name", FILES)
def test_admission_refuses_paths_of_the_limiter(kubectl: Kubectl, name: str) -> None:
    refused = kubectl.refused("apply", "-f", "-", stdin=stream_of(attempt(name, FILES[name][0])))
    assert "denied the request: spec.containers[0]." in refused
    assert ": wanted a path that " in refused


@pytest.mark.parametrize("name", [name for name in FILES if name not in IN_PROC])
def test_a_container_with_a_limit_file_of_its_own_gets_no_memory(
    kubectl: Kubectl, without_webhooks: Callable[[Obj], Obj], name: str
) -> None:
    change, file = FILES[name]
    kubectl.apply(without_webhooks(attempt(name, change)))
    output = said(kubectl, name)
    assert f"gpupool: {file}: {INSIDE if name == 'above' else OVER}" in output
    assert "0 2 2 0" in output.splitlines()


@pytest.mark.parametrize("name", IN_PROC)
def test_a_container_with_a_mount_inside_of_proc_does_not_start(
    kubectl: Kubectl, without_webhooks: Callable[[Obj], Obj], name: str
) -> None:
    change, _ = FILES[name]
    kubectl.apply(without_webhooks(attempt(name, change)))
    kubectl.wait("jsonpath={.status.phase}=Failed", f"pod/{name}", within_s=60)
    state = "{.status.containerStatuses[0].state.terminated.message}"
    why = kubectl("get", "pod", name, "-o", f"jsonpath={state}")
    assert "cannot be mounted: it is inside of /proc" in why
