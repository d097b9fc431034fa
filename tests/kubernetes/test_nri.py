"""Cards put into containers by the agent, on a node whose runtime knows nothing of NVIDIA."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import HELD_BACK, RESOURCE_GPU_MEM
from kubeclient.objects import Obj
from testbed.build import BuildError
from testbed.cluster import Kubernetes
from testbed.containerd_runtime import Containerd
from testbed.crio_runtime import Crio, missing_programs
from testbed.gpu_images import write_gpu_images
from testbed.installation import NRI, Installation
from testbed.node_runtime import NodeRuntime
from testbed.story import V100
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, allocatable, registered
from tests.kubernetes.pods import UNITS_PER_CARD, is_ready, mismatches, telling

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

NODE = "127.0.0.2"
AGENT = f"agent-{NODE}"


@pytest.fixture(scope="module", params=[Containerd(), Crio()], ids=["containerd", "CRI-O"])
def kubernetes(able: None, request: pytest.FixtureRequest) -> Iterator[Kubernetes]:
    runtime: NodeRuntime = request.param
    if isinstance(runtime, Crio) and missing_programs():
        pytest.skip(f"CRI-O: wanted {', '.join(missing_programs())} on PATH, found none")
    try:
        with Kubernetes(nodes=1, images=write_gpu_images, runtimes=[runtime]) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NO REAL KUBERNETES: {error}", pytrace=False)


@pytest.fixture(scope="module")
def kubeconfig(kubernetes: Kubernetes) -> Path:
    """Of the cluster with this runtime: the one of conftest.py does not follow the parameter."""
    return kubernetes.plane.kubeconfig


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    with Installation(kubernetes, {NODE: [V100] * 4}, injection={NODE: NRI}) as installed:
        admin("label", "node", "--all", "cgpu=true", "cgpu.disable.isolation=false")
        eventually(lambda: registered(admin), LONGEST_S)
        eventually(lambda: units(admin) == str(4 * UNITS_PER_CARD), LONGEST_S)
        yield installed


def units(kubectl: Kubectl) -> str:
    return allocatable(kubectl, NODE).get(RESOURCE_GPU_MEM, "0")


def nodes_in(kubectl: Kubectl, pod: Obj) -> list[str]:
    """The device nodes of NVIDIA that the container sees."""
    name = pod["metadata"]["name"]
    return kubectl("exec", name, "--", "sh", "-c", "ls /dev | grep nvidia").split()


def running(kubectl: Kubectl, name: str) -> Obj:
    kubectl.wait("condition=Ready", f"pod/{name}", within_s=LONGEST_S)
    found: Obj = kubectl.json("get", "pod", name)
    return found


def test_every_container_sees_its_own_card_and_limit(
    gpupool: Installation, kubectl: Kubectl
) -> None:
    for number in range(6):
        kubectl.apply(telling(f"share-{number}", 3 + number))
    for number in range(6):
        pod = running(kubectl, f"share-{number}")
        (share,) = pod_allocation(pod).containers[0].shares
        assert nodes_in(kubectl, pod) == [f"nvidia{share.index}", "nvidiactl"]
        eventually(lambda: not mismatches(kubectl, pod), LONGEST_S)  # noqa: B023


def ends_when_told(name: str, units: int) -> Obj:
    """It ends when there is a file /end, and starts again."""
    pod = telling(name, units)
    command = pod["spec"]["containers"][0]["command"]
    command[-1] = command[-1].replace(
        "exec sleep 2147483647", "until [ -e /end ]; do sleep 1; done"
    )
    return pod


def test_without_the_agent_no_container_starts_again(
    gpupool: Installation, kubectl: Kubectl
) -> None:
    """The kubelet asks the device plugin before each start."""
    kubectl.apply(ends_when_told("again", 3))
    running(kubectl, "again")
    gpupool.kill(AGENT)
    kubectl("exec", "again", "--", "touch", "/end")
    waiting = (".status.containerStatuses[0].state.waiting.reason", "pod", "again")
    eventually(lambda: kubectl.field(*waiting) == "CreateContainerConfigError", LONGEST_S)
    gpupool.start(AGENT)
    eventually(lambda: is_ready(kubectl.json("get", "pod", "again")), LONGEST_S)
    assert mismatches(kubectl, kubectl.json("get", "pod", "again")) == []


def test_while_the_runtime_does_not_ask_the_agent_no_container_starts_and_it_says_why(
    gpupool: Installation, kubectl: Kubectl, kubernetes: Kubernetes
) -> None:
    kubectl.apply(ends_when_told("held", 3))
    running(kubectl, "held")
    gpupool.kill(AGENT)
    (node,) = kubernetes.nodes
    away = node.nri.rename(node.nri.with_suffix(".away"))
    try:
        node.nri.touch()  # there, and nobody answers
        gpupool.start(AGENT)
        kubectl("exec", "held", "--", "touch", "/end")
        words = eventually(lambda: words_of_the_last_start(kubectl, "held"), LONGEST_S)
        assert HELD_BACK in words
    finally:
        away.rename(node.nri)
    eventually(lambda: is_ready(kubectl.json("get", "pod", "held")), LONGEST_S)
    assert mismatches(kubectl, kubectl.json("get", "pod", "held")) == []


def words_of_the_last_start(kubectl: Kubectl, name: str) -> str:
    """What the runtime said when it could not start the container. containerd makes it and fails to
    start it; CRI-O fails to make it."""
    (status,) = kubectl.json("get", "pod", name)["status"]["containerStatuses"]
    waits = status["state"].get("waiting") or {}
    if waits.get("reason") == "CreateContainerError":
        return str(waits["message"])
    ends = [status[when].get("terminated") or {} for when in ("state", "lastState")]
    return next((end["message"] for end in ends if end.get("reason") == "StartError"), "")
