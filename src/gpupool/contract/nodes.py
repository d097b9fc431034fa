"""Node object -> NodeInfo.

Never fails: what cannot be read counts as missing, so that no pod gets it, and becomes one of the
problems of the NodeInfo.
"""

from gpupool.contract.inventory import BadInventory, inventory_of
from gpupool.contract.names import (
    ANNOTATION_INVENTORY,
    LABEL_ALLOW_NO_ISOLATION,
    LABEL_CGPU,
    LABEL_CGPU_NO_ISOLATION,
    LABEL_GPU_PLACEMENT,
    LABEL_GPU_SCHEDULE,
)
from gpupool.core.gpu import CardPlacement, GpuMode, Inventory
from gpupool.core.nodes import NodeInfo
from kubeclient.objects import Obj
from kubeclient.placement import amount, taints
from kubeclient.quantity import ParseError

# Values of LABEL_GPU_SCHEDULE under which cards are shared by memory.
_SHARING = frozenset({"share", "cgpu", "core_mem", "mps"})
_SHARING_UNLIMITED = "share"


def node_of(node: Obj) -> NodeInfo:
    spec, metadata = node.get("spec") or {}, node["metadata"]
    labels = metadata.get("labels") or {}
    placement = labels.get(LABEL_GPU_PLACEMENT)
    problems: list[str] = []
    inventory = _inventory(metadata.get("annotations") or {}, problems)
    return NodeInfo(
        name=metadata["name"],
        labels=labels,
        taints=taints(spec),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=_offered((node.get("status") or {}).get("allocatable") or {}, problems),
        inventory=inventory,
        gpu_mode=gpu_mode(labels),
        card_placement=CardPlacement(placement) if placement in list(CardPlacement) else None,
        isolates=_isolates(inventory, labels),
        grants_unisolated=labels.get(LABEL_ALLOW_NO_ISOLATION) == "true",
        problems=tuple(problems),
    )


def _offered(allocatable: Obj, problems: list[str]) -> dict[str, int]:
    found = {}
    for name, text in allocatable.items():
        try:
            found[name] = amount(name, str(text))
        except ParseError as error:
            problems.append(f"allocatable {name} cannot be read: {error}")
    return found


def gpu_mode(labels: Obj) -> GpuMode:
    """By the newer label if it is set, else by the older one; without both, cards are whole."""
    schedule = labels.get(LABEL_GPU_SCHEDULE)
    if schedule:
        return GpuMode.SHARED if schedule in _SHARING else GpuMode.WHOLE
    return GpuMode.SHARED if labels.get(LABEL_CGPU) == "true" else GpuMode.WHOLE


def _isolates(inventory: Inventory | None, labels: Obj) -> bool:
    """What the agent reports as done counts. The labels only say what it is going to do."""
    if inventory is None or inventory.isolates is None:
        return isolates(labels)
    return inventory.isolates


def isolates(labels: Obj) -> bool:
    """Whether the labels ask for the limiter on new shares."""
    if LABEL_CGPU_NO_ISOLATION in labels:
        return bool(labels[LABEL_CGPU_NO_ISOLATION] != "true")
    return labels.get(LABEL_GPU_SCHEDULE) != _SHARING_UNLIMITED


def _inventory(annotations: Obj, problems: list[str]) -> Inventory | None:
    text = annotations.get(ANNOTATION_INVENTORY)
    try:
        return inventory_of(text) if text else None
    except BadInventory as error:
        problems.append(f"the annotation {ANNOTATION_INVENTORY} cannot be read: {error}")
        return None
