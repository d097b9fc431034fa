"""Why a GPU pod is refused: one sentence for each thing, with field, wanted and found."""

from collections.abc import Callable, Iterator

from gpupool.admission.asked import GPU_RESOURCES, Place, gpu_places, is_shared
from gpupool.admission.cards import ClusterCards
from gpupool.contract.gpu_asks import MAX_CARDS
from gpupool.contract.names import (
    ENV_MEM_CONTAINER,
    ENV_MEM_DEV,
    ENV_MEM_IDX,
    ENV_MEM_POD,
    ENV_VISIBLE_DEVICES,
    LABEL_GPU_COUNT,
    RESOURCE_GPU,
    RESOURCE_GPU_MEM,
    RESOURCE_GPU_PERCENT,
)
from gpupool.contract.objects import Obj
from gpupool.core.gpu import WHOLE_CARD_PERCENT
from gpupool.core.quantity import NANOS, ParseError, parse, value

OUR_ENV = frozenset({ENV_VISIBLE_DEVICES, ENV_MEM_IDX, ENV_MEM_POD, ENV_MEM_CONTAINER, ENV_MEM_DEV})


def complaints(pod: Obj, cards: ClusterCards) -> list[str]:
    found = [text for place in gpu_places(pod) for text in _of_container(place)]
    if not found:  # what follows counts, and can only count what is whole
        found = [text for check in _POD_CHECKS for text in check(pod, cards)]
    return found


def _of_container(place: Place) -> Iterator[str]:
    limits, requests = place.amounts("limits"), place.amounts("requests")
    for name in GPU_RESOURCES:
        field = f"{place.field}.resources.limits[{name}]"
        if name not in limits:
            if name in requests:
                asked = requests[name]
                yield f"{field}: wanted GPUs in limits, found {asked} in requests only"
            continue
        whole = _whole(limits[name])
        if whole is None or whole < 0:
            yield f"{field}: wanted a whole number, found {limits[name]}"
        elif name in requests and _whole(requests[name]) != whole:
            yield (
                f"{place.field}.resources.requests[{name}]: wanted {limits[name]} as in limits, "
                f"found {requests[name]}"
            )
    if place.asks(RESOURCE_GPU) and place.asks(RESOURCE_GPU_MEM):
        yield (
            f"{place.field}.resources.limits: wanted whole cards ({RESOURCE_GPU}) or a share of "
            f"one ({RESOURCE_GPU_MEM}), found both"
        )
    yield from _percent(place)
    yield from _environment(place)


def _whole(text: object) -> int | None:
    """None when it is a fraction, or no number."""
    try:
        quantity = parse(str(text))
    except ParseError:
        return None
    return None if quantity.nanos % NANOS else value(quantity)


def _percent(place: Place) -> Iterator[str]:
    if not place.asks(RESOURCE_GPU_PERCENT):
        return
    field = f"{place.field}.resources.limits[{RESOURCE_GPU_PERCENT}]"
    percent = _whole(place.amounts("limits")[RESOURCE_GPU_PERCENT])
    if percent is not None and not 1 <= percent <= WHOLE_CARD_PERCENT:
        yield f"{field}: wanted 1 to {WHOLE_CARD_PERCENT} percent of a card, found {percent}"
    if not is_shared(place):
        yield f"{field}: wanted {RESOURCE_GPU_MEM} beside it, found none"


def _environment(place: Place) -> Iterator[str]:
    for i, variable in enumerate(place.container.get("env") or ()):
        if variable.get("name") in OUR_ENV:
            yield (
                f"{place.field}.env[{i}].name: wanted a name that gpupool does not set itself, "
                f"found {variable['name']}"
            )


def _node_name(pod: Obj, _cards: ClusterCards) -> Iterator[str]:
    if pod["spec"].get("nodeName"):
        yield (
            "spec.nodeName: wanted none, because the scheduler also chooses the card; "
            f"found {pod['spec']['nodeName']}; use nodeSelector or affinity"
        )


def _count(pod: Obj, _cards: ClusterCards) -> Iterator[str]:
    text = (pod["metadata"].get("labels") or {}).get(LABEL_GPU_COUNT)
    shared = [place for place in gpu_places(pod) if is_shared(place)]
    if text is None or not shared:
        return
    field = f"metadata.labels[{LABEL_GPU_COUNT}]"
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_CARDS):
        yield f"{field}: wanted a number of cards, 1 to {MAX_CARDS}, found {text}"
        return
    for place in shared:
        units = _units(place)
        if units % int(text):
            yield (
                f"{place.field}.resources.limits[{RESOURCE_GPU_MEM}]: wanted a multiple of the "
                f"{text} cards of label {LABEL_GPU_COUNT}, found {units}"
            )


def _too_large(pod: Obj, cards: ClusterCards) -> Iterator[str]:
    if not cards.largest_units:  # no shared card yet; perhaps a pool will grow
        return
    for place in gpu_places(pod):
        if not is_shared(place):
            continue
        units = _units(place) // card_count(pod)
        if units > cards.largest_units:
            yield (
                f"{place.field}.resources.limits[{RESOURCE_GPU_MEM}]: wanted at most "
                f"{cards.largest_units} GiB, which the largest shared card has, found {units}"
            )


_POD_CHECKS: tuple[Callable[[Obj, ClusterCards], Iterator[str]], ...] = (
    _node_name,
    _count,
    _too_large,
)


def card_count(pod: Obj) -> int:
    """How many cards each share is spread over. Only where `complaints` found none."""
    text = (pod["metadata"].get("labels") or {}).get(LABEL_GPU_COUNT)
    return int(text) if text and text.isascii() and text.isdigit() and int(text) else 1


def _units(place: Place) -> int:
    return value(parse(str(place.amounts("limits")[RESOURCE_GPU_MEM])))


def units_per_card(place: Place, pod: Obj) -> int:
    return _units(place) // card_count(pod)
