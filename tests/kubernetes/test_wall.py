"""The driver's wall on real containers: a limit for the cgroup v2 of each, before it starts.

Real: kubelet, containerd, runc, the containers, their cgroups v2, what the kernel says of them, and
NVML's names. The driver behind them is simulated. Where the machine has the controllers in cgroup
v1, as most test machines, the leaves are made by testbed/unified_leaves.py.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpupool.cli.main import gpupool as command
from gpupool.contract.names import LABEL_ISOLATION, RESOURCE_GPU_MEM
from gpupool.hardware.simdriver_state import opened
from kubeclient.objects import Obj
from testbed.build import BuildError
from testbed.cluster import Kubernetes
from testbed.containerd_runtime import Containerd
from testbed.gpu_images import write_gpu_images
from testbed.installation import NRI, Installation
from testbed.story import V100
from testbed.unified_leaves import UNIFIED
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, allocatable, registered
from tests.kubernetes.pods import MIB_PER_CARD, UNITS_PER_CARD, gpu_pod, is_ready

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not UNIFIED.exists(), reason="wanted a hierarchy of cgroup v2 at unified"),
]

NODE = "127.0.0.2"
AGENT = f"agent-{NODE}"
CARDS = 8
AT_ONCE = 100
LONG_S = 900.0
# Its first calls take all memory that the driver's own file gives, which the limiter does not see.
_TAKE_ALL = """
import ctypes, signal
cuda = ctypes.CDLL("/usr/local/nvidia/lib/libcuda.so.1")
context, pointer, taken, size = ctypes.c_void_p(), ctypes.c_uint64(), 0, 1024
for code in (cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)):
    assert code == 0, code
while size:
    if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size << 20)) == 0:
        taken += size
    else:
        size //= 2
print("took", taken, flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    try:
        leaves = [Containerd(has_leaves=True)]
        with Kubernetes(nodes=1, runtimes=leaves, images=write_gpu_images) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NO REAL KUBERNETES: {error}", pytrace=False)


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    cards = {NODE: [V100] * CARDS}
    with Installation(kubernetes, cards, injection={NODE: NRI}) as installed:
        admin("label", "node", "--all", "cgpu=true", "cgpu.disable.isolation=false")
        eventually(lambda: registered(admin), LONGEST_S)
        eventually(lambda: units(admin) == CARDS * UNITS_PER_CARD, LONGEST_S)
        held_by_driver = ("nodes", "-l", f"{LABEL_ISOLATION}=driver")
        eventually(lambda: admin.names(*held_by_driver) == [NODE], LONGEST_S)
        yield installed


def units(kubectl: Kubectl) -> int:
    return int(allocatable(kubectl, NODE).get(RESOURCE_GPU_MEM, 0))


def greedy(name: str, units: int) -> Obj:
    """Takes what it can get."""
    pod = gpu_pod(name, RESOURCE_GPU_MEM, units)
    pod["spec"]["containers"][0]["command"] = ["python3", "-c", _TAKE_ALL]
    return pod


def mib(units: int) -> int:
    return units * MIB_PER_CARD // UNITS_PER_CARD


def limits(gpupool: Installation) -> dict[str, list[int]]:
    """What the driver holds: by cgroup, MiB of each limited card."""
    with opened(gpupool.drivers[NODE].state) as (_, state):
        return {
            entry.place.decode(): [hard >> 20 for hard in entry.hard if hard < 2**63]
            for entry in state.limits[: state.limits_seen]
            if entry.is_set
        }


def leaves(kubernetes: Kubernetes) -> list[str]:
    """Of pods. Some of them may go while they are listed."""
    return [place for place, _, _ in os.walk(kubernetes.nodes[0].leaves) if "/pod" in place]


def took(kubectl: Kubectl, name: str) -> list[str]:
    with contextlib.suppress(AssertionError):
        return [line.split()[1] for line in kubectl("logs", name).splitlines() if "took" in line]
    return []


def test_a_program_meets_the_wall_from_its_first_call(
    gpupool: Installation, kubectl: Kubectl, kubernetes: Kubernetes
) -> None:
    kubectl.apply(greedy("first", 3))
    eventually(lambda: took(kubectl, "first") == [str(mib(3))], LONGEST_S)
    (held,) = limits(gpupool).values()
    assert held == [mib(3)]
    # The place of the limit is the cgroup of this container.
    status = kubectl.json("get", "pod", "first")["status"]["containerStatuses"][0]
    container = status["containerID"].partition("://")[2]
    (place,) = limits(gpupool)
    assert place.endswith(f"/{container}")
    assert (UNIFIED / place.lstrip("/")).is_dir()


def test_a_killed_program_starts_again_behind_its_wall(
    gpupool: Installation, kubectl: Kubectl, kubernetes: Kubernetes
) -> None:
    kubectl.apply(greedy("again", 2))
    eventually(lambda: took(kubectl, "again") == [str(mib(2))], LONGEST_S)
    (before,) = [place for place, held in limits(gpupool).items() if held == [mib(2)]]
    for pid in (UNIFIED / before.lstrip("/") / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    restarts = (".status.containerStatuses[0].restartCount", "pod", "again")
    eventually(lambda: kubectl.field(*restarts) == "1", LONGEST_S)
    eventually(lambda: took(kubectl, "again") == [str(mib(2))], LONGEST_S)
    eventually(lambda: before not in limits(gpupool), LONGEST_S)


def test_a_resize_moves_the_wall_and_an_agent_that_restarts_leaves_it(
    gpupool: Installation, kubectl: Kubectl, kubeconfig: Path
) -> None:
    pod = gpu_pod("resized", RESOURCE_GPU_MEM, 4)
    kubectl.apply(pod)
    kubectl.wait("condition=Ready", "pod/resized", within_s=LONGEST_S)
    assert [mib(4)] in limits(gpupool).values()
    for wanted in (6, 1):
        words = ["resize", "resized", "--gpu-mem", str(wanted), "--namespace", kubectl.namespace]
        where = ["--kubeconfig", str(kubeconfig), "--timeout", "120"]
        done = CliRunner().invoke(command, [*words, *where])
        assert done.exit_code == 0, done.output
        eventually(lambda u=wanted: [mib(u)] in limits(gpupool).values(), LONGEST_S)  # type: ignore[misc]
    before = limits(gpupool)
    gpupool.kill(AGENT)
    assert limits(gpupool) == before
    # A kubelet rejects a pod for good that comes while the agent is away.
    eventually(lambda: units(kubectl) == 0, LONGEST_S)
    gpupool.start(AGENT)
    eventually(lambda: units(kubectl) == CARDS * UNITS_PER_CARD, LONGEST_S)
    kubectl.apply(gpu_pod("next", RESOURCE_GPU_MEM, 5))
    kubectl.wait("condition=Ready", "pod/next", within_s=LONGEST_S)
    assert before.items() <= limits(gpupool).items()
    assert [mib(5)] in limits(gpupool).values()


def test_a_hundred_containers_at_once_have_their_walls_and_leave_nothing(
    gpupool: Installation, kubectl: Kubectl, kubernetes: Kubernetes
) -> None:
    eventually(lambda: limits(gpupool) == {}, LONG_S)  # the pods of other tests are gone
    kubectl.apply(*(gpu_pod(f"pod-{n}", RESOURCE_GPU_MEM, 1) for n in range(AT_ONCE)))

    def are_ready() -> bool:
        pods = kubectl.json("get", "pods")["items"]
        return len(pods) == AT_ONCE and all(map(is_ready, pods))

    eventually(are_ready, LONG_S)
    assert sorted(limits(gpupool).values()) == [[mib(1)]] * AT_ONCE
    kubectl("delete", "pods", "--all", "--wait=false")
    eventually(lambda: not kubectl.json("get", "pods")["items"], LONG_S)
    eventually(lambda: limits(gpupool) == {}, LONG_S)
    eventually(lambda: not leaves(kubernetes), LONG_S)
