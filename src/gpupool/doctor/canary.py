"""Canaries: pods that say what they see of their cards. Which to start, and what they show. Pure.

One of each kind on each kind of node: nodes with the same way, cards, mode and isolation are alike.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import (
    LABEL_PINNED_WAY,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
)
from gpupool.contract.nodes import node_of
from gpupool.core.gpu import ContainerGpus, GpuMode, Isolation
from gpupool.core.nodes import NodeInfo
from gpupool.doctor.evidence import Finding, Level
from kubeclient.names import LABEL_HOSTNAME
from kubeclient.objects import Obj

CONTAINER = "canary"
LABEL = "gpupool.io/canary"
NOTHING_SEEN = "no answer"
_DEADLINE_S = 300  # a canary that nobody deletes ends by itself
_MOST_NODES = 100  # that one canary names: a pod of thousands is large, and helps no more
_TOLERANCE_MIB = 64  # drivers round, and count what they keep for themselves differently
# Each line is `card UUID MiB`, as NVML has it, or `cuda WORDS`. The message of a container that
# ends is in its status, so nobody needs the right to read logs.
_SCRIPT = r"""
exec > /dev/termination-log 2>&1
nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader,nounits |
  sed -n 's/^\(GPU-[^,]*\), *\([0-9]*\).*/card \1 \2/p;t;s/^/said /p'
command -v python3 > /dev/null && python3 -c '
import ctypes
try:
    cuda = ctypes.CDLL("libcuda.so.1")
    found, count = cuda.cuInit(0), ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    print("cuda", count.value if found == 0 else "cuInit-gives-%d" % found)
except OSError as error:
    print("cuda", error)
'
exit 0
"""


@dataclass(frozen=True, slots=True)
class Canary:
    kind: str  # "a whole card", in the words of findings
    nodes: tuple[str, ...]  # it may go to any of them: the first may be full
    like: int  # how many nodes are alike, also those that are not named
    way: str
    resource: str
    is_free: bool = False  # asks to run without isolation


def canaries(nodes: Iterable[Obj]) -> list[Canary]:
    """For each kind of node, those whose cards take pods."""
    kinds: dict[object, list[NodeInfo]] = {}
    for node in map(node_of, nodes):
        inventory = node.inventory
        if inventory is None or not any(card.takes_pods for card in inventory.cards):
            continue
        ways = inventory.ways.words if inventory.ways is not None else "unknown"
        models = frozenset(card.model for card in inventory.cards)
        modes = (node.gpu_mode, node.isolates, node.grants_unisolated, inventory.wall)
        kinds.setdefault((ways, models, modes), []).append(node)
    return [each for alike in kinds.values() for each in _of_kind(alike)]


def _of_kind(alike: Sequence[NodeInfo]) -> Iterator[Canary]:
    node = alike[0]
    inventory = node.inventory
    assert inventory is not None
    way = inventory.ways.words if inventory.ways is not None else "unknown"
    of_node = (tuple(each.name for each in alike[:_MOST_NODES]), len(alike), way)
    if node.gpu_mode is not GpuMode.SHARED:
        yield Canary("a whole card", *of_node, RESOURCE_GPU)
    elif not node.isolates:
        yield Canary("a share without isolation", *of_node, RESOURCE_GPU_MEM)
    else:
        yield Canary("an isolated share", *of_node, RESOURCE_GPU_MEM)
        if node.grants_unisolated:
            yield Canary("a share without isolation", *of_node, RESOURCE_GPU_MEM, is_free=True)


def canary_pod(canary: Canary, name: str, namespace: str, image: str) -> Obj:
    container: Obj = {
        "name": CONTAINER,
        "image": image,
        "command": ["sh", "-c", _SCRIPT],
        "resources": {"limits": {canary.resource: "1"}},
    }
    if canary.is_free:
        container["env"] = [{"name": "CGPU_DISABLE", "value": "true"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {LABEL: "true"}},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": _DEADLINE_S,
            "automountServiceAccountToken": False,
            "affinity": {"nodeAffinity": _on(canary.nodes)},
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        },
    }


def _on(nodes: Sequence[str]) -> Obj:
    wanted = {"key": LABEL_HOSTNAME, "operator": "In", "values": list(nodes)}
    terms = [{"matchExpressions": [wanted]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def judged(canary: Canary, pod: Obj, memory: Mapping[str, int]) -> Finding:
    """What the pod shows, as it ended or was left. `memory`: MiB of each card of the node."""
    status = pod.get("status") or {}
    node = (pod.get("spec") or {}).get("nodeName") or canary.nodes[0]
    given = next((g for g in pod_allocation(pod).containers if g.container == CONTAINER), None)
    if given is None:
        words = (
            f"A pod with {canary.kind} on node {_one_of(canary)} (way {canary.way}) "
            f"was not placed, so nothing is known: {_why_waiting(status)}."
        )
        return Finding(Level.NOTE, "canary", words, "Try again when a card is free there.")
    who = f"A pod with {canary.kind} on node {node} (way {canary.way})"
    said = _said(status)
    if said is None:
        words = f"{who} did not run to its end: {_why_not_ended(status)}."
        mend = f"kubectl describe node {node}; docs/agent.md has the ways."
        return Finding(Level.WRONG, "canary", words, mend)
    if problem := _mismatch(given, said, memory):
        mend = f"Pin another way: kubectl label node {node} {LABEL_PINNED_WAY}=..."
        return Finding(Level.WRONG, "canary", f"{who} {problem}.", mend)
    alike = f" ({canary.like} nodes are alike)" if canary.like > 1 else ""
    sizes = {share.uuid: _size(given, share.uuid, memory) for share in given.shares}
    seen = ", ".join(f"{uuid} with {mib} MiB" for uuid, mib in sizes.items())
    return Finding(Level.OK, "canary", f"{who} sees exactly {seen}{alike}.")


def _one_of(canary: Canary) -> str:
    others = len(canary.nodes) - 1
    more = f" or {others} {'node' if others == 1 else 'nodes'} like it" if others else ""
    return f"{canary.nodes[0]}{more}"


def _mismatch(given: ContainerGpus, said: str, memory: Mapping[str, int]) -> str:
    """Empty: it sees what it was given."""
    lines = [line.split() for line in said.splitlines()]
    seen = {line[1]: int(line[2]) for line in lines if len(line) == 3 and line[0] == "card"}
    wanted = {share.uuid: _size(given, share.uuid, memory) for share in given.shares}
    if not seen:
        words = " ".join(" ".join(said.split())[:200].split()) or NOTHING_SEEN
        return f"sees no card, and was given {', '.join(wanted)}: {words}"
    if seen.keys() != wanted.keys():
        return f"sees {', '.join(sorted(seen))}, and was given {', '.join(sorted(wanted))}"
    for uuid, mib in wanted.items():
        if mib and abs(seen[uuid] - mib) > _TOLERANCE_MIB:
            return f"sees {seen[uuid]} MiB of card {uuid}, and should see {mib} MiB"
    cuda = next((line[1:] for line in lines if line and line[0] == "cuda"), [str(len(wanted))])
    if cuda != [str(len(wanted))]:
        return f"sees its card, but CUDA does not: {' '.join(cuda)[:200]}"
    return ""


def _size(given: ContainerGpus, uuid: str, memory: Mapping[str, int]) -> int:
    """What the container should see of the card; 0: unknown."""
    if given.isolation is Isolation.LIMIT:
        return next(share.memory_mib for share in given.shares if share.uuid == uuid)
    return memory.get(uuid, 0)


def _said(status: Obj) -> str | None:
    """What the container wrote, if it has ended."""
    for container in status.get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("reason") == "Completed":
            return str(ended.get("message", ""))
    return None


def _why_not_ended(status: Obj) -> str:
    for container in status.get("containerStatuses") or ():
        for kind in ("waiting", "terminated"):
            state = (container.get("state") or {}).get(kind) or {}
            if state:
                return _flat(f"{state.get('reason', kind)}: {state.get('message', '')}")
    return _flat(f"{status.get('reason') or status.get('phase', '')}: {status.get('message', '')}")


def _why_waiting(status: Obj) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _flat(condition.get("message", ""))
    return "no scheduler has looked at it"


def _flat(text: str) -> str:
    return " ".join(text.split())[:300].rstrip(": .")
