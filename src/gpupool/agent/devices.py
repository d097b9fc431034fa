"""A node's cards as devices of the kubelet. Pure.

The kubelet only counts devices: how many there are, how many are taken. It chooses the ids by
itself, and a device plugin cannot tell it which pod gets which. Which card a container gets is the
scheduler's decision and travels with the pod. So a device's id is a plain number that stands for no
card; what must be right is how many devices are healthy and free: see `unhealthy_ids`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpupool.contract.names import RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT
from gpupool.core.gpu import WHOLE_CARD_PERCENT, Card, GpuMode
from kubeclient.kubeletapi.messages import HEALTHY, MAX_MESSAGE_BYTES, UNHEALTHY, Device

RESOURCES = (RESOURCE_GPU, RESOURCE_GPU_MEM, RESOURCE_GPU_PERCENT)
# Protobuf writes a tag and a length, one byte each, before the device, its id and its health.
_DEVICE_BYTES = 2 + 2 + 2 + len(UNHEALTHY)  # in the kubelet's list, beside its id


class Holding(NamedTuple):
    """One container: which devices the kubelet gave it, and which cards the scheduler gave it."""

    ids: tuple[str, ...]
    shares: Mapping[str, int]  # uuid of a card -> how many devices its share of that card makes


class Offer(NamedTuple):
    devices: tuple[Device, ...] = ()
    refusal: str = ""  # why no devices are offered although there are cards


def offers(
    cards: Sequence[Card], mode: GpuMode, holdings: Mapping[str, Iterable[Holding]]
) -> dict[str, Offer]:
    """One offer per resource. `holdings` (by resource) matter only while a card is unhealthy."""
    found = {resource: Offer() for resource in RESOURCES}
    for resource in RESOURCES:
        counts = [device_count(card, resource, mode) for card in cards]
        if not sum(counts):
            continue
        found[resource] = _offer(resource, cards, counts, list(holdings.get(resource, ())))
    return found


def device_count(card: Card, resource: str, mode: GpuMode) -> int:
    """How many devices of the resource one card makes."""
    if mode is GpuMode.SHARED:
        shared = {RESOURCE_GPU_MEM: card.units, RESOURCE_GPU_PERCENT: WHOLE_CARD_PERCENT}
        return shared.get(resource, 0)
    return 1 if resource == RESOURCE_GPU else 0


def _offer(
    resource: str, cards: Sequence[Card], counts: Sequence[int], holdings: Sequence[Holding]
) -> Offer:
    total = sum(counts)
    # _DEVICE_BYTES assumes that all are unhealthy, the longer word: the list must fit even then.
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
    """For each card that takes no pods, as many devices as the card makes.

    Marked first are the devices of containers that use the bad card, then free devices. This way
    the kubelet counts as many healthy, free devices as the scheduler counts free units on good
    cards. With any other choice, a pod that the scheduler has put on a good card could be refused
    by the kubelet ("insufficient devices"), because free devices were marked although the bad
    card's own were in use.

    Where nothing is known of the containers, the devices are marked in the order of the cards.
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
            # The kubelet does not say which of a container's devices belong to which of its cards.
            # Only the number counts, so any that are not marked yet will do.
            left = [number for number in holding.ids if number not in marked]
            mine += left[: holding.shares.get(card.uuid, 0)]
        # The numbers of the bad card itself may be held by pods on other cards; then free ones of
        # other cards are marked instead.
        anywhere = (str(number) for number in range(sum(counts)))
        spare = (n for n in (*own, *anywhere) if n not in held and n not in marked)
        marked.update(dict.fromkeys(mine))
        for number in dict.fromkeys(spare):
            if len(mine) >= count:
                break
            mine.append(number)
        marked.update(mine)
    return frozenset(marked)
