"""A snapshot of a live cluster (`kubectl get nodes,pods -A -o json`) -> Trace.

Its pods arrive one after the other, and its nodes are empty at first. A node without an inventory
of our agent gets as many healthy cards as it offers, all of one model.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from gpupool.contract.names import LABEL_NVIDIA_MEM, LABEL_NVIDIA_NAME, RESOURCE_GPU
from gpupool.contract.nodes import node_of
from gpupool.contract.pods import pod_request
from gpupool.core.gpu import Card, GpuAsk, GpuMode, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from gpupool.replay.trace import MILLI, Trace, TraceError, TracePod

_OVER = ("Succeeded", "Failed")
_MOST_CARDS = 64
_USUAL_MIB = 16 * 1024  # size of a card if the node does not state it


def is_snapshot(found: Any) -> bool:
    return isinstance(found, dict) and found.get("kind") in ("List", "NodeList", "PodList")


def snapshot_of(found: Any, path: Path) -> Trace:
    nodes, pods = [], []
    items = found.get("items")
    for at, item in enumerate(items if isinstance(items, list) else []):
        try:
            _check_metadata(item["metadata"])
            if item["kind"] == "Node":
                nodes.append(_with_cards(node_of(item)))
            elif item["kind"] == "Pod" and item["status"].get("phase") not in _OVER:
                pods.append(replace(pod_request(item), node_name=""))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise TraceError(
                f"{path}: items[{at}]: wanted a whole Node or Pod as the API server has it, found"
                " one with missing or wrong fields; make it with: kubectl get nodes,pods -A -o json"
            ) from None
    if not nodes or not pods:
        raise TraceError(
            f"{path}: wanted nodes and pods, found {len(nodes)} and {len(pods)};"
            " make it with: kubectl get nodes,pods -A -o json"
        )
    units = _usual_units(nodes)
    return Trace(path.name, tuple(nodes), tuple(_pod(pod, units) for pod in pods))


def _check_metadata(metadata: Any) -> None:
    """Raises TypeError for what the API server never writes, and the engine does not expect."""
    texts = [metadata["name"], metadata.get("namespace") or "", metadata.get("uid") or ""]
    for field in ("labels", "annotations"):
        texts += (metadata.get(field) or {}).values()
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("metadata")


def _with_cards(node: NodeInfo) -> NodeInfo:
    count = min(node.allocatable.get(RESOURCE_GPU, 0), _MOST_CARDS)
    if node.inventory or not count:
        return node
    text = node.labels.get(LABEL_NVIDIA_MEM, "").removesuffix("MiB")
    memory = int(text) if text.isascii() and text.isdigit() else _USUAL_MIB
    model = node.labels.get(LABEL_NVIDIA_NAME, "GPU")
    cards = tuple(Card(at, f"{node.name}-{at}", model, memory) for at in range(count))
    return replace(node, inventory=Inventory(cards), gpu_mode=GpuMode.ANY)


def _usual_units(nodes: list[NodeInfo]) -> int:
    """The size of the most frequent card, against which shares are measured."""
    units = [card.units for node in nodes if node.inventory for card in node.inventory.cards]
    return max(set(units), key=lambda size: (units.count(size), size)) if units else 1


def _pod(pod: PodRequest, units: int) -> TracePod:
    amount = sum(_milli(ask, units) for ask in pod.gpus if not ask.is_init)
    cards = sum(ask.whole or ask.cards for ask in pod.gpus if not ask.is_init)
    return TracePod(pod, amount, cards)


def _milli(ask: GpuAsk, units: int) -> int:
    if ask.whole:
        return ask.whole * MILLI
    return ask.cards * min(MILLI, ask.units * MILLI // max(units, 1))
