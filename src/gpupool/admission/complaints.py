"""Why a GPU pod is refused: one sentence for each problem, with field, wanted and found."""

from collections.abc import Callable, Iterator

from gpupool.admission.asked import (
    GPU_RESOURCES,
    PodContainer,
    decimal,
    gpu_containers,
    is_shared,
    whole_number,
)
from gpupool.admission.cards import ClusterCards
from gpupool.admission.environment import environment_complaints, unrequested_complaints
from gpupool.admission.mounts import mount_complaints
from gpupool.contract.card_choice import card_choice
from gpupool.contract.gpu_asks import MAX_CARDS
from gpupool.contract.names import (
    LABEL_GPU_COUNT,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.core.gpu import WHOLE_CARD_PERCENT
from kubeclient.bounded_numbers import bounded_number
from kubeclient.objects import Obj
from kubeclient.quantity import parse, value


def complaints(pod: Obj, cards: ClusterCards) -> list[str]:
    found = [text for container in gpu_containers(pod) for text in _of_container(container)]
    found += [*unrequested_complaints(pod), *mount_complaints(pod)]
    if not found:  # the checks of the whole pod calculate with amounts that are valid
        found = [text for check in _POD_CHECKS for text in check(pod, cards)]
    return found


def _of_container(container: PodContainer) -> Iterator[str]:
    limits, requests = container.amounts("limits"), container.amounts("requests")
    for name in GPU_RESOURCES:
        field = f"{container.field}.resources.limits[{name}]"
        if name not in limits:
            if name in requests:
                asked = requests[name]
                yield f"{field}: wanted GPUs in limits, found {asked} in requests only"
            continue
        whole = whole_number(limits[name])
        if whole is None:
            yield f"{field}: wanted a whole number, found {decimal(limits[name])}"
        elif whole < 0:
            yield f"{field}: wanted 0 or more, found {limits[name]}"
        elif name in requests and whole_number(requests[name]) != whole:
            yield (
                f"{container.field}.resources.requests[{name}]: wanted {limits[name]} as in "
                f"limits, found {requests[name]}"
            )
    if container.asks(RESOURCE_GPU) and container.asks(RESOURCE_GPU_MEM):
        yield (
            f"{container.field}.resources.limits: wanted whole cards ({RESOURCE_GPU}) or a share "
            f"of one ({RESOURCE_GPU_MEM}), found both"
        )
    yield from _percent(container)
    yield from environment_complaints(container)


def _percent(container: PodContainer) -> Iterator[str]:
    limits = container.amounts("limits")
    if RESOURCE_GPU_PERCENT not in limits:
        return
    field = f"{container.field}.resources.limits[{RESOURCE_GPU_PERCENT}]"
    percent = whole_number(limits[RESOURCE_GPU_PERCENT])
    if percent is not None and not 1 <= percent <= WHOLE_CARD_PERCENT:
        yield f"{field}: wanted 1 to {WHOLE_CARD_PERCENT} percent of a card, found {percent}"
    if not is_shared(container):
        found = RESOURCE_GPU if container.asks(RESOURCE_GPU) else "none"
        yield f"{field}: wanted {RESOURCE_GPU_MEM} beside it, found {found}"


def _node_name(pod: Obj, _cards: ClusterCards) -> Iterator[str]:
    if pod["spec"].get("nodeName"):
        yield (
            "spec.nodeName: wanted none (the scheduler also chooses the card; use nodeSelector or "
            f"affinity), found {pod['spec']['nodeName']}"
        )


def _count(pod: Obj, _cards: ClusterCards) -> Iterator[str]:
    text = (pod["metadata"].get("labels") or {}).get(LABEL_GPU_COUNT)
    shared = [container for container in gpu_containers(pod) if is_shared(container)]
    if text is None or not shared:
        return
    field = f"metadata.labels[{LABEL_GPU_COUNT}]"
    count = bounded_number(text)
    if count is None or not 1 <= count <= MAX_CARDS:
        yield f"{field}: wanted a number of cards, 1 to {MAX_CARDS}, found {text[:60]}"
        return
    for container in shared:
        units = _units(container)
        if units % count:
            yield (
                f"{container.field}.resources.limits[{RESOURCE_GPU_MEM}]: wanted a multiple of the "
                f"{text} cards of label {LABEL_GPU_COUNT}, found {units}"
            )


def _too_large(pod: Obj, cards: ClusterCards) -> Iterator[str]:
    if not cards.largest_units:  # no shared card yet; a node pool may still grow
        return
    for container in gpu_containers(pod):
        if not is_shared(container):
            continue
        count = card_count(pod)
        if _units(container) > count * cards.largest_units:
            most = f"{count} times {cards.largest_units}" if count > 1 else cards.largest_units
            written = str(container.amounts("limits")[RESOURCE_GPU_MEM])
            # Each unit of a quantity makes another number of it: 3Gi are 3221225472.
            advice = "" if written.isdecimal() else "; write the number without a unit"
            yield (
                f"{container.field}.resources.limits[{RESOURCE_GPU_MEM}]: wanted a number of "
                f"{cards.unit}, at most {most} as the largest shared card has, "
                f"found {written}{advice}"
            )


def _choice(pod: Obj, _cards: ClusterCards) -> Iterator[str]:
    yield from card_choice(pod["metadata"].get("annotations") or {}).wrong


_POD_CHECKS: tuple[Callable[[Obj, ClusterCards], Iterator[str]], ...] = (
    _node_name,
    _choice,
    _count,
    _too_large,
)


def card_count(pod: Obj) -> int:
    """How many cards each share is spread over. Only for a pod without complaints."""
    text = (pod["metadata"].get("labels") or {}).get(LABEL_GPU_COUNT)
    return bounded_number(text or "") or 1


def _units(container: PodContainer) -> int:
    return value(parse(str(container.amounts("limits")[RESOURCE_GPU_MEM])))


def units_per_card(container: PodContainer, pod: Obj) -> int:
    return _units(container) // card_count(pod)
