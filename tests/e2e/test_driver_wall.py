"""Shares that the driver itself holds, in containers of a local cluster: nothing that gets round
the limiter gets round it, and a share can still be resized."""

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpupool.hardware.simdriver_state import opened
from gpupool.local.node_gpus import node_files
from gpupool.testing import Cluster
from tests.e2e.gpu_cluster import SHARED_POOLS
from tests.e2e.kubectl import Kubectl, eventually
from tests.e2e.test_resize import resize, shared

pytestmark = pytest.mark.kubectl

BYPASS = Path(__file__).parent.parent / "native" / "isolation" / "bypass.c"
CONFIG = {
    "instanceTypes": [
        {
            "name": "walled",
            "vcpus": 8,
            "memoryGiB": 32,
            "gpus": {"model": "Tesla V100-SXM2-16GB", "count": 1, "driver": "615.71.09"},
        }
    ],
    "pools": [
        {"name": "control", "role": "control-plane", "instanceType": "ecs.g6.xlarge"},
        {**SHARED_POOLS[0], "instanceType": "walled"},
    ],
}
DRIVER = "/usr/local/nvidia/lib/libcuda.so.1"
# What a program gets of card 0: the total that it is shown, and how much it can take, in MiB.
TAKE = """
import ctypes, sys
cuda, at, context = ctypes.CDLL(sys.argv[1]), ctypes.c_uint64(), ctypes.c_void_p()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0
result = cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
taken, size = 0, 4096
while size:
    if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size << 20)) == 0:
        taken += size
    else:
        size //= 2
print(total.value >> 20, taken)
"""
HOLD = """
import pathlib, time
print("held", flush=True)
while not pathlib.Path("/tmp/stop").exists():
    time.sleep(0.05)
"""
SHARE = "3226 3226\n"
# Starts a program without the limiter: its python3 is run by a copy of the loader that looks for
# the preload list elsewhere. (In the quotes of a shell: no single quote may be in it.)
_MAKE = """
import os, sys
loader, raw = "/tmp/free/loader", open("/lib64/ld-linux-x86-64.so.2", "rb").read()
os.makedirs("/tmp/free", exist_ok=True)
open(loader, "wb").write(raw.replace(b"/etc/ld.so.preload", b"/etc/ld.so.nothing"))
open("/tmp/free/python3", "w").write(f"#!/bin/sh\\nexec {loader} {sys.executable} \\"$@\\"\\n")
os.chmod(loader, 0o755)
os.chmod("/tmp/free/python3", 0o755)
"""
_RUN = 'exec env -u LD_PRELOAD -u LD_LIBRARY_PATH PATH="/tmp/free:$PATH" "$@"'
FREE = ("sh", "-c", f"python3 -c '{_MAKE}' && {_RUN}", "sh")
# The program makes sure of that itself.
TAKE_FREELY = TAKE + 'assert "limiter" not in open("/proc/self/maps").read()\n'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config=CONFIG) as running:
        yield running


@pytest.fixture(scope="module")
def kubectl(
    cluster: Cluster, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    made = Kubectl(kubectl_program, cluster.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    held = ("get", "nodes", "-l", "gpupool.io/isolation=driver", "-o", "name")
    eventually(lambda: made(*held).split(), within_s=60)
    made.apply(shared("a", 3, "sleep", "1000"))
    made.wait("condition=Ready", "pod/a")
    return made


def gpu(kubectl: Kubectl, *words: str) -> list[dict[str, Any]]:
    where = ("--kubeconfig", str(kubectl.kubeconfig), "-o", "json")
    command = [sys.executable, "-m", "gpupool", "gpu", *words, *where]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return found


def take(kubectl: Kubectl) -> str:
    return kubectl("exec", "a", "--", "python3", "-c", TAKE, "libcuda.so.1")


def take_freely(kubectl: Kubectl, *before: str, library: str = DRIVER, pod: str = "a") -> str:
    words = (*FREE, *before, "python3", "-c", TAKE_FREELY, library)
    return kubectl("exec", pod, "--", *words)


def test_a_program_gets_its_share_and_not_less_by_both_walls(kubectl: Kubectl) -> None:
    assert take(kubectl) == SHARE
    assert "3226MiB |" in kubectl("exec", "a", "--", "nvidia-smi")


def test_a_program_without_the_limiter_that_opens_the_drivers_file_is_held(
    kubectl: Kubectl,
) -> None:
    assert take_freely(kubectl) == SHARE


def test_a_copy_of_the_drivers_file_is_held(kubectl: Kubectl) -> None:
    kubectl("exec", "a", "--", "cp", DRIVER, "/tmp/mine.so")
    state = "GPUPOOL_SIM_STATE=/usr/local/nvidia/state"
    assert take_freely(kubectl, state, library="/tmp/mine.so") == SHARE


def test_a_static_program_is_held(kubectl: Kubectl, tmp_path: Path) -> None:
    program = tmp_path / "static"
    build = ["gcc", "-static", str(BYPASS), "-o", str(program), "-ldl"]
    if (
        not shutil.which("gcc")
        or subprocess.run(build, capture_output=True, check=False).returncode
    ):
        pytest.skip("no compiler here makes static programs with the C library of this machine")
    coded = base64.b64encode(program.read_bytes()).decode()
    kubectl("exec", "-i", "a", "--", "sh", "-c", "base64 -d > /tmp/static", stdin=coded)
    kubectl("exec", "a", "--", "chmod", "+x", "/tmp/static")
    # It shows the memory that cuMemGetInfo tells, and the result of asking for more than that.
    assert kubectl("exec", "a", "--", "/tmp/static", "dlopen", DRIVER) == "3226 2\n"


@pytest.mark.parametrize(
    "spoil",
    ["rm /run/gpupool/region-1", "head -c 4096 /dev/zero > /run/gpupool/region-1"],
    ids=["removed", "forged"],
)
def test_a_region_that_is_removed_or_forged_frees_nothing(kubectl: Kubectl, spoil: str) -> None:
    kubectl.apply(shared("b", 1, "sleep", "1000"))
    kubectl.wait("condition=Ready", "pod/b")
    kubectl("exec", "b", "--", "nvidia-smi")  # makes the region
    kubectl("exec", "b", "--", "sh", "-c", spoil)
    assert take_freely(kubectl, pod="b") == "1075 1075\n"
    kubectl("delete", "pod", "b", "--now")


def test_a_program_has_no_namespaces_and_mounts_of_its_own(kubectl: Kubectl) -> None:
    """With them, it could show the simulated driver another state file."""
    assert kubectl.run("exec", "a", "--", "unshare", "-Urm", "true").code != 0


def test_which_wall_holds_a_pod_is_shown(kubectl: Kubectl) -> None:
    [share] = [each for each in gpu(kubectl, "pods") if each["pod"] == "a"]
    assert share["isolation"] == "driver"
    assert [card["isolation"] for card in gpu(kubectl, "list")] == ["driver"]
    events = ("get", "events", "--field-selector", "reason=DriverHoldsShares", "-o", "name")
    eventually(lambda: kubectl(*events).split(), within_s=60)
    env = kubectl("exec", "a", "--", "env")
    assert "NVIDIA_GPU_MEMORY_LIMIT=3226" in env
    assert "NVIDIA_GPU_MEMORY_REQUEST=3226" in env


def test_a_share_grows_and_shrinks_through_the_driver(kubectl: Kubectl) -> None:
    assert resize(kubectl, "a", 6).code == 0
    eventually(lambda: take_freely(kubectl) == "6452 6452\n", within_s=60)
    assert resize(kubectl, "a", 3).code == 0
    eventually(lambda: take_freely(kubectl) == SHARE, within_s=60)


def test_memory_that_only_the_driver_knows_of_keeps_a_share_from_shrinking(
    kubectl: Kubectl,
) -> None:
    assert resize(kubectl, "a", 6).code == 0
    eventually(lambda: take_freely(kubectl) == "6452 6452\n", within_s=60)
    hold = TAKE_FREELY + HOLD
    with kubectl.start("exec", "a", "--", *FREE, "python3", "-c", hold, DRIVER) as holding:
        holding.shows("held")
        refused = resize(kubectl, "a", 3)
        kubectl("exec", "a", "--", "touch", "/tmp/stop")
        holding.ends()
        assert "is not resized: container c uses 6452 MiB of card 0" in refused.err


def test_a_container_that_restarts_is_held_before_its_program_starts(kubectl: Kubectl) -> None:
    pod = shared("again", 1, *FREE, "python3", "-c", TAKE_FREELY + "sys.exit(1)\n", DRIVER)
    kubectl.apply(pod)
    count = ".status.containerStatuses[0].restartCount"
    eventually(lambda: int(kubectl.field(count, "pod", "again") or 0) >= 1, within_s=60)
    assert eventually(lambda: kubectl("logs", "again", "--previous")) == "1075 1075\n"
    kubectl("delete", "pod", "again", "--now")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_100_containers_that_start_and_end_leave_nothing(
    kubectl: Kubectl, cluster: Cluster
) -> None:
    kubectl("delete", "pods", "--all", "--now")
    pod = shared("many", 1, *FREE, "python3", "-c", TAKE_FREELY, DRIVER)
    pod["spec"]["restartPolicy"] = "Never"
    job = {"completions": 100, "parallelism": 15, "template": {"spec": pod["spec"]}}
    metadata = {"name": "many"}
    kubectl.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job})
    kubectl.wait("condition=Complete", "job/many", within_s=600)
    logs = kubectl("logs", "-l", "job-name=many", "--tail=-1")
    assert logs.splitlines() == ["1075 1075"] * 100
    kubectl("delete", "job", "many")
    name = kubectl("get", "nodes", "-l", "gpupool.io/isolation=driver", "-o", "name").strip()
    files = node_files(cluster.directory, name.removeprefix("node/"))
    eventually(lambda: not any(files.containers.iterdir()), within_s=180)
    with opened(files.state) as (_, state):
        assert not any(state.limits[number].is_set for number in range(state.limits_seen))
