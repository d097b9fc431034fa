"""A node's cards as devices of the kubelet. Pure.

The kubelet only counts: so many devices there are, so many are taken. Which card a container gets
is the scheduler's decision and travels with the pod, so a device's id is a plain number and says
nothing of a card. What must be right is how many are healthy and free: see `unhealthy_ids`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT
from gpupool.core.gpu import WHOLE_CARD_PERCENT, Card, GpuMode
from kubeclient.kubeletapi.messages import HEALTHY, MAX_MESSAGE_BYTES, UNHEALTHY, Device

RESOURCES = (RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT)
_DEVICE_BYTES = 2 + 2 + 2 + len(UNHEALTHY)  # in the kubelet's list, beside its id


class Holding(NamedTuple):
    """What one container has: devices that the kubelet gave it, and parts of cards that it uses."""

    ids: tuple[str, ...]
    shares: Mapping[str, int]  # uuid of a card: devices' worth of it


class Offer(NamedTuple):
    devices: tuple[Device, ...] = ()
    refusal: str = ""  # why there are none, though there are cards


def offers(
    cards: Sequence[Card], mode: GpuMode, holdings: Mapping[str, Iterable[Holding]]
) -> dict[str, Offer]:
    """For each resource. `holdings` by resource; only what is wrong with cards depends on them."""
    found = {resource: Offer() for resource in RESOURCES}
    for resource in RESOURCES:
        counts = [device_count(card, resource, mode) for card in cards]
        if not sum(counts):
            continue
        found[resource] = _offer(resource, cards, counts, list(holdings.get(resource, ())))
    return found


def device_count(card: Card, resource: str, mode: GpuMode) -> int:
    """How many devices a card makes."""
    if mode is GpuMode.SHARED:
        shared = {RESOURCE_GPU_MEM: card.units, RESOURCE_GPU_PERCENT: WHOLE_CARD_PERCENT}
        return shared.get(resource, 0)
    return 1 if resource == RESOURCE_GPU else 0


def _offer(
    resource: str, cards: Sequence[Card], counts: Sequence[int], holdings: Sequence[Holding]
) -> Offer:
    total = sum(counts)
    # Also when all of them are unhealthy, which is the longer word.
    if total * (_DEVICE_BYTES + len(str(total))) > MAX_MESSAGE_BYTES:
        return Offer(refusal=_too_many(resource, total, cards[0].unit_mib))
    bad = unhealthy_ids(cards, counts, holdings)
    ids = map(str, range(total))
    return Offer(tuple(Device(id, UNHEALTHY if id in bad else HEALTHY) for id in ids))


def _too_many(resource: str, total: int, unit_mib: int) -> str:
    return (
        f"{resource} is not offered: in units of {unit_mib} MiB the cards make {total} devices, "
        f"and their list would pass the {MAX_MESSAGE_BYTES // 2**20} MiB that the kubelet takes. "
        "Choose a larger unit."
    )


def unhealthy_ids(
    cards: Sequence[Card], counts: Sequence[int], holdings: Sequence[Holding]
) -> frozenset[str]:
    """As many as the cards that take no pods make: those of the containers that use such a card,
    then free ones. So the kubelet has as many healthy, free devices as the scheduler has room, and
    a pod that the scheduler puts on a good card is never refused for a bad one.

    Where nothing is known of the containers, the devices are taken in the order of the cards.
    """
    held = {number for holding in holdings for number in holding.ids}
    marked: set[str] = set()
    first = 0
    for card, count in zip(cards, counts, strict=True):
        own = [str(number) for number in range(first, first + count)]
        first += count
        if card.takes_pods:
            continue
        mine: list[str] = []
        for holding in holdings:
            left = [number for number in holding.ids if number not in marked]
            mine += left[: holding.shares.get(card.uuid, 0)]
        anywhere = (str(number) for number in range(sum(counts)))
        spare = (n for n in (*own, *anywhere) if n not in held and n not in marked)
        marked.update(dict.fromkeys(mine))
        for number in dict.fromkeys(spare):
            if len(mine) >= count:
                break
            mine.append(number)
        marked.update(mine)
    return frozenset(marked)
