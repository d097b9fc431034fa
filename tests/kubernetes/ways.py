"""Pods on nodes with each way of a card into a container, and what they say about it."""

import collections
import random
import re
from collections.abc import Iterator

from gpupool.agent.card_watch import REASON
from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_MEM
from gpupool.core.gpu import ContainerGpus, Isolation
from kubeclient.objects import Obj
from testbed.gpu_operator import (
    NODES,
)
from testbed.installation import MOUNTS, NRI, NVIDIA_NRI, RUNTIME, RUNTIME_CLASS, Installation
from tests.e2e.kubectl import Kubectl, eventually
from tests.kubernetes.conftest import LONGEST_S, allocatable
from tests.kubernetes.pods import IMAGE, MIB_PER_CARD, UNITS_PER_CARD, is_ready

CARDS_PER_NODE = 8
PODS_PER_ROUND = 100  # in two rounds
WHOLE_PER_ROUND = 9  # so few that those that name no node leave room for those that do
LONG_S = 1500.0
TELL = """
echo "visible=$NVIDIA_VISIBLE_DEVICES"
echo "devices=$(ls /dev | grep nvidia | sort | tr '\\n' ' ')"
echo "limit=$(head -n 1 /etc/gpupool/limits 2>/dev/null)"
nvidia-smi -L 2>/dev/null | sed -n 's/.*UUID: \\(.*\\))/card=\\1/p'
nvidia-smi 2>/dev/null | grep -o '/ *[0-9]*MiB' | tr -d '/ ' | sed 's/^/memory=/'
echo said=all
"""
STAY = "exec sleep 2147483647"
OTHERS = (RUNTIME, RUNTIME_CLASS, NVIDIA_NRI)  # ways by which others put cards in
PLAIN_STATE = '.status.containerStatuses[?(@.name=="plain")].state.running.startedAt'


def witnessed(resource: str, amount: int) -> list[Obj]:
    """`main` with a card, which leaves a file that `plain` finds."""
    main, plain = container("main", resource, amount), container("plain", resource, 0)
    main["command"][-1] = f"echo > /shared/ran{TELL}{STAY}"
    for each in (main, plain):
        each["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    return [main, plain]


def sharing_a_folder(made: Obj) -> Obj:
    made["spec"]["volumes"] = [{"name": "shared", "emptyDir": {}}]
    return made


def has_run(kubectl: Kubectl) -> str:
    asks = "test -e /shared/ran && echo yes || echo no"
    return kubectl("exec", "lost", "--container=plain", "--", "sh", "-c", asks).strip()


def refusal(kubectl: Kubectl) -> str:
    """What the kubelet says about `main`, once it could not be started."""
    for each in kubectl.json("get", "pod", "lost")["status"].get("containerStatuses") or ():
        states = [*each.get("state", {}).values(), *each.get("lastState", {}).values()]
        for words in (str(state.get("message", "")) for state in states):
            if each["name"] == "main" and "promised a card" in words:
                return words
    return ""


def node_of(way: str) -> str:
    (found,) = (name for name, place in NODES.items() if place.way == way)
    return found


def container(name: str, resource: str, amount: int) -> Obj:
    limits = {resource: amount} if amount else {}
    command = ["sh", "-c", f"{TELL}{STAY}"]
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


def says(admin: Kubectl, node: str, words: str) -> bool:
    """Whether the inventory of the node has these words."""
    return words in admin("get", "node", node, "-o", "jsonpath={.metadata.annotations}")


def without_card(kubectl: Kubectl) -> str:
    """What agents said about containers that run without their card."""
    words = "jsonpath={range .items[*]}{.message}{'\\n'}{end}"
    which = ("involvedObject.kind=Pod", f"reason={REASON}")
    return kubectl("get", "events", f"--field-selector={','.join(which)}", "-o", words)
