"""A node's cards as labels. Pure.

A label has one value, but a node may have several models of card. Name and memory are those of the
card with the lowest index, the count is that of all cards; so the same cards always give the same
labels. A lost card still counts: the node has it, and the inventory tells its health.
"""

from gpupool.agent.cards import NodeCards
from gpupool.contract.names import (
    LABEL_NVIDIA_COUNT,
    LABEL_NVIDIA_MEM,
    LABEL_NVIDIA_NAME,
    LABEL_NVIDIA_NAME_ALPHA,
    LABEL_RUNTIME_CLASS,
    LABEL_WAY,
)
from gpupool.core.gpu import Inventory
from gpupool.core.ways import Way
from kubeclient.labels import as_label_value

# Newest first: `family` takes the first entry that is not newer than the card.
_FAMILIES = (
    ((13, 0), "rubin"),
    ((10, 0), "blackwell"),
    ((9, 0), "hopper"),
    ((8, 9), "ada-lovelace"),
    ((8, 0), "ampere"),
    ((7, 5), "turing"),
    ((7, 0), "volta"),
    ((6, 0), "pascal"),
    ((5, 0), "maxwell"),
    ((3, 0), "kepler"),
    ((2, 0), "fermi"),
    ((1, 0), "tesla"),
)


def card_labels(node: NodeCards) -> dict[str, str]:
    if not node.cards:
        return {}
    first = node.cards[0].facts
    name = as_label_value(first.model)
    labels = {
        LABEL_NVIDIA_COUNT: str(len(node.cards)),
        LABEL_NVIDIA_MEM: f"{first.memory_mib}MiB",
    }
    if name:
        labels |= {LABEL_NVIDIA_NAME: name, LABEL_NVIDIA_NAME_ALPHA: name}
    return labels


def feature_labels(node: NodeCards) -> dict[str, str]:
    """The labels of NVIDIA's GPU feature discovery by which workloads select nodes."""
    if not node.cards:
        return {}
    first = node.cards[0].facts
    alike = [known for known in node.cards if known.facts.model == first.model]
    labels = {
        "nvidia.com/gpu.product": as_label_value(first.model),
        "nvidia.com/gpu.count": str(len(alike)),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.memory": str(first.memory_mib),
        "nvidia.com/mps.capable": "false",
        **_driver_labels(node.driver),
        **_cuda_labels(node.cuda),
    }
    # 0: not known, for example of a card that was lost before this agent started.
    if first.compute[0]:
        labels |= {
            "nvidia.com/gpu.family": family(first.compute),
            "nvidia.com/gpu.compute.major": str(first.compute[0]),
            "nvidia.com/gpu.compute.minor": str(first.compute[1]),
        }
    return {key: value for key, value in labels.items() if value}


def family(compute: tuple[int, int]) -> str:
    return next((name for since, name in _FAMILIES if compute >= since), "undefined")


def _driver_labels(version: str) -> dict[str, str]:
    """Feature discovery has two spellings of each part of the version; both are in use."""
    major, minor, revision = (*version.split("."), "", "", "")[:3]
    full = "nvidia.com/cuda.driver-version"
    short = "nvidia.com/cuda.driver"
    labels = {
        f"{full}.full": version,
        f"{full}.major": major,
        f"{full}.minor": minor,
        f"{full}.revision": revision,
        f"{short}.major": major,
        f"{short}.minor": minor,
        f"{short}.rev": revision,
    }
    return {key: as_label_value(value) for key, value in labels.items()}


def _cuda_labels(version: int) -> dict[str, str]:
    if not version:
        return {}
    major, minor = str(version // 1000), str(version % 1000 // 10)
    return {
        "nvidia.com/cuda.runtime-version.full": f"{major}.{minor}",
        "nvidia.com/cuda.runtime-version.major": major,
        "nvidia.com/cuda.runtime-version.minor": minor,
        "nvidia.com/cuda.runtime.major": major,
        "nvidia.com/cuda.runtime.minor": minor,
    }


def way_labels(inventory: Inventory) -> dict[str, str]:
    """How cards get into containers, unless it is the usual way. By these labels the scheduler
    keeps pods to nodes where their spec works, and people select nodes."""
    ways = inventory.ways
    if ways is None:
        return {}
    found = {} if ways.chosen is Way.RUNTIME else {LABEL_WAY: str(ways.chosen or "none")}
    if ways.runtime_class:
        found[LABEL_RUNTIME_CLASS] = ways.runtime_class
    return found
