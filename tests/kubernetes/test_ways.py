"""Two hundred pods in a cluster with every way of a card into a container, each on its own node.

Agents and their connections to the container runtime are killed meanwhile. Every container says
what it sees; all of it is compared with the allocation of its pod.
"""

import collections
import random
import re
from collections.abc import Iterator

import pytest

from gpupool.agent.card_watch import REASON
from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_MEM
from gpupool.core.gpu import ContainerGpus, Isolation
from kubeclient.objects import Obj
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
from testbed.installation import MOUNTS, NRI, NVIDIA_NRI, RUNTIME, RUNTIME_CLASS, Installation
from testbed.story import V100
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, allocatable, registered
from tests.kubernetes.pods import IMAGE, MIB_PER_CARD, UNITS_PER_CARD, is_ready

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(3600)]

CARDS_PER_NODE = 8
PODS_PER_ROUND = 100  # in two rounds
WHOLE_PER_ROUND = 9  # so few that those that name no node leave room for those that do
LONG_S = 1500.0
_TELL = """
echo "visible=$NVIDIA_VISIBLE_DEVICES"
echo "devices=$(ls /dev | grep nvidia | sort | tr '\\n' ' ')"
echo "limit=$(head -n 1 /etc/gpupool/limits 2>/dev/null)"
nvidia-smi -L 2>/dev/null | sed -n 's/.*UUID: \\(.*\\))/card=\\1/p'
nvidia-smi 2>/dev/null | grep -o '/ *[0-9]*MiB' | tr -d '/ ' | sed 's/^/memory=/'
echo said=all
"""
_STAY = "exec sleep 2147483647"


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


def container(name: str, resource: str, amount: int) -> Obj:
    limits = {resource: amount} if amount else {}
    command = ["sh", "-c", f"{_TELL}{_STAY}"]
    return {"name": name, "image": IMAGE, "command": command, "resources": {"limits": limits}}


def pod(name: str, containers: list[Obj], node: str = "") -> Obj:
    spec = {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": containers,
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def pods_of(seed: int, shared: list[str], whole: list[str]) -> list[Obj]:
    """In random order: whole cards, shares, several containers with and without a card; two of
    three pods name their node."""
    chance = random.Random(seed)
    made = []
    for number in range(PODS_PER_ROUND):
        nodes = whole if number < WHOLE_PER_ROUND else shared
        node = nodes[number // 3 % len(nodes)] if number % 3 else ""
        if number < WHOLE_PER_ROUND:
            containers = [container("main", RESOURCE_GPU, 1 + (number % 9 == 0))]
        else:
            containers = [container("main", RESOURCE_GPU_MEM, chance.choice((1, 1, 2, 3)))]
            if number % 5 == 0:
                containers.append(container("second", RESOURCE_GPU_MEM, 1))
        if number % 7 == 0:
            containers.insert(0, container("plain", RESOURCE_GPU_MEM, 0))
        made.append(pod(f"pod-{seed}-{number}", containers, node))
    chance.shuffle(made)
    return made


def strikes(gpupool: Installation, seed: int) -> Iterator[str]:
    """Kills an agent, or makes the runtime end its connection: a plugin that does not answer within
    two seconds is dropped."""
    chance = random.Random(seed)
    while True:
        node = chance.choice(sorted(NODES))
        agent = f"agent-{node}"
        if NODES[node].way == NRI and chance.random() < 0.5:
            gpupool.freeze(agent)
            yield f"{agent} frozen"
            gpupool.thaw(agent)
        else:
            gpupool.kill(agent)
            yield f"{agent} killed"
            gpupool.start(agent)
        yield f"{agent} is back"


def what_they_say(kubectl: Kubectl, count: int) -> dict[tuple[str, str], dict[str, list[str]]]:
    """By pod and container."""
    said: dict[tuple[str, str], dict[str, list[str]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    flags = ("--all-containers", "--prefix", "--tail=-1", f"--max-log-requests={count}")
    for line in kubectl("logs", "--selector=!nobody", *flags).splitlines():
        if found := re.match(r"\[pod/([^/]+)/([^\]]+)\] (\w+)=(.*)", line):
            said[found[1], found[2]][found[3]].append(found[4].strip())
    return said


def wanted(gpus: ContainerGpus | None, node: str, units: int) -> dict[str, list[str]]:
    """What a container with this allocation must say."""
    if gpus is None:
        return {"devices": [""], "card": []}
    uuids = [share.uuid for share in gpus.shares]
    found = {"visible": [",".join(uuids)], "card": uuids}
    if NODES[node].way != MOUNTS:
        indexes = sorted(share.index for share in gpus.shares)
        found["devices"] = [" ".join([*(f"nvidia{index}" for index in indexes), "nvidiactl"])]
    if gpus.isolation is Isolation.LIMIT:
        mib = units * MIB_PER_CARD // UNITS_PER_CARD
        found |= {"limit": [f"{uuids[0]} {mib} 0"], "memory": [f"{mib}MiB"]}
    return found


def mismatches(kubectl: Kubectl, found: list[Obj]) -> list[str]:
    said = what_they_say(kubectl, 2 * len(found))
    wrong = []
    for each in found:
        name, node = each["metadata"]["name"], each["spec"]["nodeName"]
        allocated = {gpus.container: gpus for gpus in pod_allocation(each).containers}
        for one in each["spec"]["containers"]:
            limits = one["resources"].get("limits") or {}
            units = int(limits.get(RESOURCE_GPU_MEM, 0))
            told = said[name, one["name"]]
            expected = {"said": ["all"], **wanted(allocated.get(one["name"]), node, units)}
            wrong += [
                f"{name}/{one['name']} on {node} ({NODES[node].way}): {what}: wanted {value}, "
                f"found {told[what]}"
                for what, value in expected.items()
                if told[what] != value
            ]
    return wrong


def current(kubectl: Kubectl) -> list[Obj]:
    items: list[Obj] = kubectl.json("get", "pods")["items"]
    return items


def all_ready(kubectl: Kubectl, made: list[Obj]) -> bool:
    """The kubelet rejects a pod for good whose agent is away when it arrives; the pod's controller
    makes another one. These have none, so it is done here."""
    found = current(kubectl)
    failed = {each["metadata"]["name"] for each in found if each["status"]["phase"] == "Failed"}
    if failed:
        kubectl("delete", "pods", *sorted(failed))
        kubectl.apply(*(each for each in made if each["metadata"]["name"] in failed))
    return len(found) == len(made) and all(map(is_ready, found))


def share_nodes(admin: Kubectl, shared: list[str], whole: list[str]) -> None:
    if shared:
        admin("label", "node", *shared, "cgpu=true", "cgpu.disable.isolation=false", "--overwrite")
    if whole:
        admin("label", "node", *whole, "cgpu-", "cgpu.disable.isolation-")

    def are_ready() -> bool:
        units, cards = str(CARDS_PER_NODE * UNITS_PER_CARD), str(CARDS_PER_NODE)
        return all(allocatable(admin, node).get(RESOURCE_GPU_MEM) == units for node in shared) and (
            all(allocatable(admin, node).get(RESOURCE_GPU) == cards for node in whole)
        )

    eventually(are_ready, LONGEST_S)


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


def says(admin: Kubectl, node: str, words: str) -> bool:
    """Whether the inventory of the node has these words."""
    return words in admin("get", "node", node, "-o", "jsonpath={.metadata.annotations}")


def test_a_container_that_starts_again_while_its_card_does_not_get_in_is_refused(
    gpupool: Installation, kubectl: Kubectl, admin: Kubectl
) -> None:
    """By PreStartContainer: Allocate is not called again. It starts when the way is back."""
    (node,) = (name for name, place in NODES.items() if place.way == NVIDIA_NRI)
    share_nodes(admin, [node], [])
    main = container("main", RESOURCE_GPU_MEM, 2)
    main["command"][-1] = f"{_TELL}until test -e /end; do sleep 0.2; done"
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


def without_card(kubectl: Kubectl) -> str:
    """What agents said about containers that run without their card."""
    words = "jsonpath={range .items[*]}{.message}{'\\n'}{end}"
    which = ("involvedObject.kind=Pod", f"reason={REASON}")
    return kubectl("get", "events", f"--field-selector={','.join(which)}", "-o", words)


@pytest.mark.parametrize("way", [RUNTIME, RUNTIME_CLASS, NVIDIA_NRI])
def test_a_whole_card_that_did_not_get_in_is_reported_with_node_and_way(
    kubernetes: Kubernetes, gpupool: Installation, kubectl: Kubectl, admin: Kubectl, way: str
) -> None:
    """Nobody knows that the way is broken, and no limiter is in the container: the agent looks."""
    (node,) = (name for name, place in NODES.items() if place.way == way)
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


@pytest.mark.parametrize("way", [RUNTIME, RUNTIME_CLASS, NVIDIA_NRI])
def test_a_share_whose_card_did_not_get_in_ends_with_node_and_way(
    kubernetes: Kubernetes, gpupool: Installation, kubectl: Kubectl, admin: Kubectl, way: str
) -> None:
    """Nobody knows that the way is broken: the limiter in the container notices."""
    (node,) = (name for name, place in NODES.items() if place.way == way)
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
