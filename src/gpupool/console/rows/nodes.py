"""A node as lists show it."""

from dataclasses import dataclass

from gpupool.contract.names import LABEL_POOL
from gpupool.contract.nodes import node_of
from gpupool.core.gpu import CardHealth
from kubeclient.objects import Obj

_ROLE = "node-role.kubernetes.io/"
_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    address: str
    roles: tuple[str, ...]
    pool: str
    instance_type: str
    is_ready: bool
    is_cordoned: bool
    trouble: str  # the message of its condition Ready, while it is not
    models: tuple[str, ...]  # of its cards, each once
    cards: int
    sick: int  # cards that take no pods
    units: int  # of GPU memory, on all cards
    cpu_milli: int  # that pods may request
    memory_bytes: int
    pods: int  # that it may run
    version: str
    os: str
    created: str
    labels: tuple[tuple[str, str], ...]


def node_row(node: Obj) -> NodeRow:
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    labels = metadata.get("labels") or {}
    known = node_of(node)
    cards = known.inventory.cards if known.inventory else ()
    ready = _ready(status)
    info = status.get("nodeInfo") or {}
    return NodeRow(
        name=metadata["name"],
        address=_address(status),
        roles=tuple(sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))),
        pool=labels.get(LABEL_POOL, ""),
        instance_type=next((labels[key] for key in _TYPES if key in labels), ""),
        is_ready=ready.get("status") == "True",
        is_cordoned=bool(spec.get("unschedulable")),
        trouble="" if ready.get("status") == "True" else str(ready.get("message") or ""),
        models=tuple(dict.fromkeys(card.model for card in cards)),
        cards=len(cards),
        sick=sum(card.health is not CardHealth.HEALTHY for card in cards),
        units=sum(card.units for card in cards),
        cpu_milli=known.allocatable.get("cpu", 0),
        memory_bytes=known.allocatable.get("memory", 0),
        pods=known.allocatable.get("pods", 0),
        version=str(info.get("kubeletVersion") or ""),
        os=str(info.get("osImage") or ""),
        created=metadata.get("creationTimestamp") or "",
        labels=tuple(sorted(labels.items())),
    )


def _address(status: Obj) -> str:
    for each in status.get("addresses") or ():
        if each.get("type") == "InternalIP":
            return str(each.get("address") or "")
    return ""


def _ready(status: Obj) -> Obj:
    for each in status.get("conditions") or ():
        if each.get("type") == "Ready":
            return dict(each)
    return {}
