"""Units of gpu-mem for an amount of memory, or for a part of a card. Never less than was asked."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

from gpupool.admission.cards import ClusterCards
from gpupool.core.card_choice import CardChoice
from gpupool.core.gpu import MIB_PER_GIB, Card, limit_mib
from gpupool.core.pods import PodRequest
from kubeclient.placement import selects_node


def sizes_for(cards: ClusterCards, pod: PodRequest) -> list[Card]:
    """The shared cards that the pod may come to, one for each size, the smallest first."""
    choice = pod.card_choice or CardChoice()
    by_size = {
        (card.units, card.memory_mib, card.model): card
        for node in cards.shared
        if node.inventory
        and selects_node(pod.node_selector, pod.node_terms, node.name, node.labels)
        for card in node.inventory.cards
        if card.units and choice.takes(card)
    }
    return [by_size[size] for size in sorted(by_size)]


def units_for_mib(mib: int, sizes: Sequence[Card]) -> int:
    """A unit of a card is `unit_mib` or a little more: a card of 16130 MiB has 15 units.

    Counted with `unit_mib`, so that cards which come later cannot give less. For nearly all memory
    of a card that would be more units than the card has; then the cards that there are decide. 0:
    no card has so much.
    """
    unit_mib = min((card.unit_mib for card in sizes), default=MIB_PER_GIB)
    units = ceil(Fraction(mib, unit_mib))
    most = max((card.units for card in sizes), default=units)
    if units <= most:
        return units
    fitting = (
        units
        for units in range(1, most + 1)
        if all(limit_mib(units, card) >= mib for card in sizes if card.units >= units)
    )
    return next(fitting, 0)


def units_for_part(part: Fraction, sizes: Sequence[Card]) -> set[int]:
    """All different answers: the same part of cards of different sizes is not the same amount."""
    return {ceil(part * card.units) for card in sizes}


def given_mib(units: int, sizes: Sequence[Card]) -> int:
    """What so many units are at least."""
    known = [limit_mib(units, card) for card in sizes if card.units >= units]
    return min(known, default=units * MIB_PER_GIB)


def described(sizes: Sequence[Card]) -> Iterator[str]:
    for card in sizes:
        yield f"{card.model} ({card.units} units)"
