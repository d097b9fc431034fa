"""A pod's containers -> the GPUs that each of them asks for, or what is wrong with the request.

Admission checks the same earlier and in more detail. A pod that bypassed admission must not be
placed wrongly either.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpupool.contract.card_choice import card_choice
from gpupool.contract.documents import MOST_UNITS
from gpupool.contract.names import (
    ANNOTATION_NO_ISOLATION,
    LABEL_CARD_PLACEMENT,
    LABEL_DIFFERENT_CARD,
    LABEL_GPU_COUNT,
    LABEL_SAME_CARD,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import WHOLE_CARD_PERCENT, CardPlacement, GpuAsk
from kubeclient.objects import Obj
from kubeclient.quantity import ParseError, parse, value

MAX_CARDS = 64  # of one pod on one node
# A pod that asks for more cards than any node has waits, and is told so, like every other pod. This
# is only what the engine can count with.
_MOST_WHOLE = 1_000_000
_MOST = {
    RESOURCE_GPU: _MOST_WHOLE,
    RESOURCE_GPU_MEM: MAX_CARDS * MOST_UNITS,
    RESOURCE_GPU_PERCENT: WHOLE_CARD_PERCENT,
}
_LONGEST_SHOWN = 40
MAX_CONTAINERS = 32  # with GPUs, in one pod


class GpuAsks(NamedTuple):
    asks: tuple[GpuAsk, ...] = ()
    placement: CardPlacement | None = None
    same_card: str = ""
    different_card: str = ""
    choice: CardChoice | None = None
    wrong: tuple[str, ...] = ()


def gpu_asks(pod: Obj) -> GpuAsks:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    annotations = metadata.get("annotations") or {}
    wishes = annotations.get(ANNOTATION_NO_ISOLATION, "").split(",")
    asks: list[GpuAsk] = []
    wrong: list[str] = []
    has_init = has_sidecar = False
    for container, is_init in _containers(pod["spec"]):
        found = _ask(container, labels, is_init)
        if isinstance(found, str):
            wrong.append(found)
        elif found is not None:
            asks.append(replace(found, unisolated=True) if found.container in wishes else found)
            has_init |= is_init
            has_sidecar |= "restartPolicy" in container
    if not asks:
        return GpuAsks(wrong=tuple(wrong))
    # A sidecar may run beside the init containers. Then neither the sum nor the maximum of both is
    # what the pod holds of a card.
    if has_init and has_sidecar:
        wrong.append("GPUs in an init container and in a sidecar of the same pod")
    if len(asks) > MAX_CONTAINERS:
        wrong.append(f"more than {MAX_CONTAINERS} containers with GPUs")
    text = labels.get(LABEL_CARD_PLACEMENT, "")
    if text and text not in list(CardPlacement):
        wrong.append(f"label {LABEL_CARD_PLACEMENT}={text}")
    if labels.get(LABEL_SAME_CARD) and any(ask.whole for ask in asks):
        wrong.append(f"label {LABEL_SAME_CARD} with whole GPUs")
    placement = CardPlacement(text) if text in list(CardPlacement) else None
    same, different = labels.get(LABEL_SAME_CARD, ""), labels.get(LABEL_DIFFERENT_CARD, "")
    choice = card_choice(annotations)
    wrong += choice.wrong
    return GpuAsks(tuple(asks), placement, same, different, choice.choice, tuple(wrong))


def _containers(spec: Obj) -> Iterator[tuple[Obj, bool]]:
    """Containers, and whether each runs alone: an init container that is not a sidecar."""
    for container in spec.get("initContainers") or ():
        yield container, container.get("restartPolicy") != "Always"
    for container in spec["containers"]:
        yield container, False


def _ask(container: Obj, labels: Obj, is_init: bool) -> GpuAsk | str | None:
    """None: no GPUs. A text: what is wrong."""
    limits = (container.get("resources") or {}).get("limits") or {}
    amounts = []
    for name, most in _MOST.items():
        found = _amount(str(limits.get(name, "0")), most)
        if isinstance(found, str):
            return f"{name}={found} in container {container['name']}"
        amounts.append(found)
    whole, units, percent = amounts
    if whole and (units or percent):
        return f"{RESOURCE_GPU} together with a share of a card in container {container['name']}"
    if percent and not units:
        return f"{RESOURCE_GPU_PERCENT} without {RESOURCE_GPU_MEM}"
    if whole:
        return GpuAsk(container["name"], whole=whole, is_init=is_init)
    return _share(container["name"], units, percent, labels, is_init) if units else None


def _amount(text: str, most: int) -> int | str:
    """A text: what was found, and what is wrong with it."""
    found = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
    try:
        number = value(parse(text))
    except ParseError:
        return f"{found} (no number)"
    if number > most:
        return f"{found} (at most {most} is possible)"
    return number if number >= 0 else f"{found} (less than 0)"


def _share(name: str, units: int, percent: int, labels: Obj, is_init: bool) -> GpuAsk | str:
    text = labels.get(LABEL_GPU_COUNT, "1")
    cards = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    if not 1 <= cards <= MAX_CARDS or units % cards:
        return f"label {LABEL_GPU_COUNT}={text} with {units} units of {RESOURCE_GPU_MEM}"
    return GpuAsk(name, units=units // cards, cards=cards, percent=percent, is_init=is_init)
