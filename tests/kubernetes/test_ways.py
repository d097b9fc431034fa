"""Two hundred pods in a cluster with every way of a card into a container, each on its own node.

Agents and their connections to the container runtime are killed meanwhile. Every container says
what it sees; all of it is compared with the allocation of its pod.
"""

from collections.abc import Iterator

import pytest

from gpupool.agent.card_watch import REASON
from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_MEM
from testbed.build import BuildError
from testbed.cluster import Kubernetes
from testbed.gpu_images import write_gpu_images
from testbed.gpu_operator import (
    NODES,
    broken_plugin,
    injection,
    install_operator,
    runtimes,
    silent_way,
)
from testbed.images import BUSYBOX
from testbed.installation import NVIDIA_NRI, RUNTIME, RUNTIME_CLASS, Installation
from testbed.story import V100
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, registered
from tests.kubernetes.ways import (
    CARDS_PER_NODE,
    LONG_S,
    OTHERS,
    PLAIN_STATE,
    TELL,
    all_ready,
    container,
    current,
    has_run,
    mismatches,
    node_of,
    pod,
    pods_of,
    refusal,
    says,
    share_nodes,
    sharing_a_folder,
    strikes,
    without_card,
    witnessed,
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def kubernetes(able: None) -> Iterator[Kubernetes]:
    try:
        with Kubernetes(nodes=len(NODES), runtimes=runtimes(), images=write_gpu_images) as running:
            yield running
    except BuildError as error:
        pytest.fail(f"NO REAL KUBERNETES: {error}", pytrace=False)


@pytest.fixture(scope="module")
def gpupool(kubernetes: Kubernetes, admin: Kubectl) -> Iterator[Installation]:
    cards = {node: [V100] * CARDS_PER_NODE for node in NODES}
    with Installation(kubernetes, cards, injection=injection()) as installed:
        install_operator(installed)
        eventually(lambda: registered(admin), LONGEST_S)
        yield installed


def test_every_node_says_how_cards_get_into_its_containers(
    gpupool: Installation, kubectl: Kubectl, admin: Kubectl
) -> None:
    for node, place in NODES.items():
        if place.way == RUNTIME:
            continue  # the usual way, which needs no label
        label = (".metadata.labels.gpupool\\.io/way", "node", node)
        eventually(lambda where=label, way=place.way: admin.field(*where) == way, LONGEST_S)  # type: ignore[misc]


@pytest.mark.parametrize("turn", [0, 1])
def test_every_container_sees_its_card_and_limit_whatever_the_way(
    gpupool: Installation, kubectl: Kubectl, admin: Kubectl, turn: int
) -> None:
    nodes = sorted(NODES)
    shared, whole = nodes[turn::2], nodes[1 - turn :: 2]
    share_nodes(admin, shared, whole)
    striking = strikes(gpupool, turn)
    made = pods_of(turn, shared, whole)
    for begin in range(0, len(made), 20):
        kubectl.apply(*made[begin : begin + 20])
        next(striking)
    for _ in range(6):
        next(striking)
    while "back" not in next(striking):
        pass
    eventually(lambda: all_ready(kubectl, made), LONG_S)
    found = current(kubectl)
    assert {each["spec"]["nodeName"] for each in found} == set(NODES)
    assert mismatches(kubectl, found) == []
    assert without_card(kubectl) == ""
    kubectl("delete", "pods", "--all", "--wait=false")
    eventually(lambda: not current(kubectl), LONG_S)


def test_a_container_that_starts_again_while_its_card_does_not_get_in_is_refused(
    gpupool: Installation, kubectl: Kubectl, admin: Kubectl
) -> None:
    """By PreStartContainer: Allocate is not called again. It starts when the way is back."""
    node = node_of(NVIDIA_NRI)
    share_nodes(admin, [node], [])
    main = container("main", RESOURCE_GPU_MEM, 2)
    main["command"][-1] = f"{TELL}until test -e /end; do sleep 0.2; done"
    kubectl.apply(pod("again", [main], node))
    kubectl.wait("condition=Ready", "pod/again", within_s=80)
    place = ".status.containerStatuses[0]"
    before = kubectl.field(f"{place}.containerID", "pod", "again")

    with broken_plugin(gpupool, node):
        eventually(lambda: says(admin, node, "is not ready"), LONGEST_S)
        kubectl("exec", "again", "--", "touch", "/end")
        refused = (f"{place}.state.waiting.reason", "pod", "again")
        eventually(lambda: kubectl.field(*refused) == "CreateContainerConfigError", LONGEST_S)
        words = kubectl.field(f"{place}.state.waiting.message", "pod", "again")
        assert f"node {node}: cards do not get into containers by NVIDIA's plugin" in words
        assert "which runs NVIDIA's NRI plugin, is not ready" in words

    kubectl.wait("condition=Ready", "pod/again", within_s=80)
    assert kubectl.field(f"{place}.containerID", "pod", "again") != before
    assert mismatches(kubectl, current(kubectl)) == []


@pytest.mark.parametrize("way", OTHERS)
def test_a_whole_card_that_did_not_get_in_keeps_its_container_from_starting(
    kubernetes: Kubernetes, gpupool: Installation, kubectl: Kubectl, admin: Kubectl, way: str
) -> None:
    """Nobody knows that the way is broken. The agent looks before the program starts, with
    containerd 1.7 (the first way) and 2. It starts when the way is back."""
    node = node_of(way)
    share_nodes(admin, [], [node])
    eventually(lambda: says(admin, node, "checksStarts"), LONGEST_S)
    with silent_way(kubernetes, gpupool, node):
        kubectl.apply(sharing_a_folder(pod("lost", witnessed(RESOURCE_GPU, 1), node)))
        words = eventually(lambda: refusal(kubectl), LONGEST_S)
        assert "container main was promised a card, which did not get into it" in words
        assert f"Node {node}, way {way}" in words
        assert eventually(lambda: without_card(kubectl), LONGEST_S)
        eventually(lambda: kubectl.field(PLAIN_STATE, "pod", "lost"), LONGEST_S)
        assert has_run(kubectl) == "no"
    kubectl.wait("condition=Ready", "pod/lost", within_s=300)
    assert has_run(kubectl) == "yes"
    assert mismatches(kubectl, current(kubectl)) == []


def test_a_static_program_with_a_share_does_not_start_without_its_card(
    kubernetes: Kubernetes, gpupool: Installation, kubectl: Kubectl, admin: Kubectl
) -> None:
    """No limiter is loaded into it that could look."""
    node = node_of(RUNTIME_CLASS)
    share_nodes(admin, [node], [])
    main, plain = witnessed(RESOURCE_GPU_MEM, 2)
    for each in (main, plain):
        each["image"] = BUSYBOX
        each["command"][0] = "/bin/sh"
    with silent_way(kubernetes, gpupool, node):
        kubectl.apply(sharing_a_folder(pod("lost", [main, plain], node)))
        assert f"Node {node}, way {RUNTIME_CLASS}" in eventually(
            lambda: refusal(kubectl), LONGEST_S
        )


def test_an_agent_that_does_not_answer_keeps_no_container_from_starting(
    gpupool: Installation, kubectl: Kubectl, admin: Kubectl
) -> None:
    """The runtime leaves it out. Those with cards wait for their device plugin, as ever."""
    node = node_of(RUNTIME)
    eventually(lambda: says(admin, node, "checksStarts"), LONGEST_S)
    gpupool.freeze(f"agent-{node}")
    try:
        for name in ("first", "second"):
            kubectl.apply(pod(name, [container("plain", RESOURCE_GPU, 0)], node))
            kubectl.wait("condition=Ready", f"pod/{name}", within_s=80)
    finally:
        gpupool.thaw(f"agent-{node}")


@pytest.fixture(scope="module")
def without_nri(gpupool: Installation, admin: Kubectl) -> None:
    """From now on, the runtimes do not ask agents, as on nodes without NRI."""
    for way in OTHERS:
        node = node_of(way)
        gpupool.leave_out(f"agent-{node}", "--nri")
        eventually(lambda where=node: not says(admin, where, "checksStarts"), LONGEST_S)  # type: ignore[misc]


@pytest.mark.usefixtures("without_nri")
@pytest.mark.parametrize("way", OTHERS)
def test_a_whole_card_that_did_not_get_in_is_reported_with_node_and_way(
    kubernetes: Kubernetes, gpupool: Installation, kubectl: Kubectl, admin: Kubectl, way: str
) -> None:
    """Nobody knows that the way is broken, and no limiter is in the container: the agent looks."""
    node = node_of(way)
    share_nodes(admin, [], [node])
    kubectl.apply(pod("sees", [container("main", RESOURCE_GPU, 1)], node))
    kubectl.wait("condition=Ready", "pod/sees", within_s=80)
    with silent_way(kubernetes, gpupool, node):
        both = [container("main", RESOURCE_GPU, 1), container("plain", RESOURCE_GPU, 0)]
        kubectl.apply(pod("lost", both, node))
        said = eventually(lambda: without_card(kubectl), LONGEST_S).splitlines()
    assert len(said) == 1, said
    assert said[0].startswith("container main runs without the card that it was promised")
    assert f"Node {node}, way {way}" in said[0]
    names = kubectl("get", "events", f"--field-selector=reason={REASON}", "-o", "name")
    assert "/lost." in names
    assert "/sees." not in names


@pytest.mark.usefixtures("without_nri")
@pytest.mark.parametrize("way", OTHERS)
def test_a_share_whose_card_did_not_get_in_ends_with_node_and_way(
    kubernetes: Kubernetes, gpupool: Installation, kubectl: Kubectl, admin: Kubectl, way: str
) -> None:
    """Nobody knows that the way is broken: the limiter in the container notices."""
    node = node_of(way)
    share_nodes(admin, [node], [])
    main = container("main", RESOURCE_GPU_MEM, 2)
    main["command"] = [
        "python3",
        "-c",
        "import time; print('I run', flush=True); time.sleep(2**31)",
    ]
    with silent_way(kubernetes, gpupool, node):
        made = pod("lost", [main], node)
        made["spec"]["restartPolicy"] = "Never"
        kubectl.apply(made)
        eventually(lambda: kubectl.field(".status.phase", "pod", "lost") == "Failed", LONGEST_S)
    (status,) = kubectl.json("get", "pod", "lost")["status"]["containerStatuses"]
    ended = status["state"]["terminated"]
    assert ended["exitCode"] == 78, ended
    assert f"did not get into it: node {node}, way {way}" in ended["message"]
    assert "I run" not in kubectl("logs", "lost")
    kubectl("delete", "pod", "lost")
    kubectl.apply(pod("lost", [main], node))
    kubectl.wait("condition=Ready", "pod/lost", within_s=80)
