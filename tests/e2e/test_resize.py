"""More and less of a card for a pod that runs, with the real kubectl and `gpupool resize`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.testing import Cluster
from kubeclient.objects import Obj
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Ended, Kubectl, eventually

pytestmark = pytest.mark.kubectl

POOLS = [
    {"name": "control", "role": "control-plane", "instanceType": "ecs.g6.xlarge", "count": 1},
    *SHARED_POOLS,
]
HOLD = """
import ctypes, pathlib, tempfile, time
cuda, at, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
size = ctypes.c_size_t(5000 << 20)
print("holding", cuda.cuMemAlloc_v2(ctypes.byref(at), size), flush=True)
while not pathlib.Path(tempfile.gettempdir(), "stop").exists():
    time.sleep(0.05)
"""
STOP = "import pathlib, tempfile; pathlib.Path(tempfile.gettempdir(), 'stop').touch()"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(pools=POOLS) as running:
        yield running


@pytest.fixture
def kubectl(cluster: Cluster, kubectl_program: Path, tmp_path: Path) -> Kubectl:
    made = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path)
    labelled = ("get", "nodes", "-l", "aliyun.accelerator/nvidia_name", "-o", "name")
    eventually(lambda: len(made(*labelled).split()) == 2, within_s=60)
    return made


def shared(name: str, units: int, *command: str, isolated: bool = True) -> Obj:
    container = {
        "name": "c",
        "image": "python",
        "command": list(command),
        "resources": {"limits": {"aliyun.com/gpu-mem": units}},
    }
    pool = {"cgpu.disable.isolation": "false" if isolated else "true"}
    spec = {"containers": [container], "nodeSelector": pool, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def resize(kubectl: Kubectl, pod: str, units: int) -> Ended:
    words = ["resize", pod, "--gpu-mem", str(units), "--kubeconfig", str(kubectl.kubeconfig)]
    command = [sys.executable, "-m", "gpupool", *words, "--timeout", "30"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def test_a_running_pod_gets_more_and_less_of_its_card(kubectl: Kubectl) -> None:
    kubectl.apply(shared("a", 3, "sleep", "1000"))
    kubectl.wait("condition=Ready", "pod/a")

    def seen() -> str:
        return kubectl("exec", "a", "--", "nvidia-smi")

    assert "3226MiB |" in seen()
    grown = resize(kubectl, "a", 6)
    assert grown.out == (
        "default/a resized: container c: 3 units (3226 MiB) -> 6 units (6452 MiB).\n"
    )
    eventually(lambda: "6452MiB |" in seen())
    assert kubectl.field(".status.containerStatuses[0].restartCount", "pod", "a") == "0"

    # What it uses, it keeps.
    with kubectl.start("exec", "a", "--", "python3", "-c", HOLD) as holding:
        holding.shows("holding 0")
        refused = resize(kubectl, "a", 3)
        assert refused.code == 1
        assert "default/a is not resized: container c uses 50" in refused.err
        eventually(lambda: "6452MiB |" in seen())
        kubectl("exec", "a", "--", "python3", "-c", STOP)
        holding.ends()

    # Others get what is left, and what it gives back.
    kubectl.apply(shared("b", 9, "sleep", "1000"))
    kubectl.wait("condition=Ready", "pod/b")
    assert "so this pod can have 6 of it, not 7" in resize(kubectl, "a", 7).err
    assert "ResizeRefused" in eventually(
        lambda: kubectl("get", "events", "--field-selector", "reason=ResizeRefused")
    )
    seen()  # a program that gives back what ended ones held
    assert resize(kubectl, "a", 3).code == 0
    eventually(lambda: "3226MiB |" in seen())
    kubectl.apply(shared("c", 3, "sleep", "1000"))
    kubectl.wait("condition=Ready", "pod/c")


def test_a_share_does_not_grow_past_its_namespaces_quota(kubectl: Kubectl) -> None:
    kubectl("delete", "pods", "--all", "--now")
    kubectl("create", "quota", "gpus", "--hard=requests.aliyun.com/gpu-mem=5")
    kubectl.apply(shared("a", 3, "sleep", "1000"))
    used = r".status.used.requests\.aliyun\.com/gpu-mem"
    eventually(lambda: kubectl.field(used, "quota", "gpus") == "3", within_s=60)
    kubectl.wait("condition=Ready", "pod/a")
    assert resize(kubectl, "a", 6).err == (
        "Error: default/a is not resized: quota gpus of namespace default has 5 units of gpu-mem; "
        "others have 0, so this pod can have 5, not 6.\n"
    )
    assert resize(kubectl, "a", 5).code == 0
    kubectl("delete", "quota", "gpus")


@pytest.mark.slow
def test_a_pod_that_holds_more_than_its_share_is_told_of(kubectl: Kubectl) -> None:
    kubectl.apply(shared("greedy", 3, "python3", "-c", HOLD, isolated=False))
    kubectl.wait("condition=Ready", "pod/greedy")
    node = kubectl.field(".spec.nodeName", "pod", "greedy")
    about = ("get", "events", "--field-selector", "reason=GpuMemoryOveruse", "-o", "name")
    eventually(lambda: len(kubectl(*about).split()) == 2, within_s=60)
    assert "its share is 3226 MiB" in kubectl("describe", "pod", "greedy")
    assert "default/greedy: its programs hold 5" in kubectl("describe", "node", node)
    assert "runs without the limiter" in resize(kubectl, "greedy", 6).err
