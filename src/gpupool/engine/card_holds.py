"""card_holds: what a pod holds of each card, and which cards it may hold if that cannot be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpupool.core.gpu import (
    Allocation,
    Card,
    CardShare,
    ContainerGpus,
    GpuAsk,
    Isolation,
    Unread,
    limit_mib,
)
from gpupool.core.pods import PodRequest

_WHOLE = Isolation.WHOLE  # members of an enum are slow to find, and this runs for every decision


@dataclass(slots=True)
class CardHold:
    """The most that a pod holds of one card at any time, init containers included.

    Never changed. Not frozen, because that takes twice as long to make, for every decision.
    """

    uuid: str
    units: int
    percent: int
    whole: bool
    possible: bool = False  # nobody knows how much more of it the pod holds: closed to others


def card_holds(pod: PodRequest, allocation: Allocation) -> tuple[CardHold, ...]:
    """Init containers run before the others, so the larger of the two counts, card by card."""
    if len(allocation.containers) == 1:
        return _holds_of(allocation.containers[0])
    init = {ask.container for ask in pod.gpus if ask.is_init}
    # These containers run together, so their holds of one card add up.
    most = _summed(gpus for gpus in allocation.containers if gpus.container not in init)
    for gpus in allocation.containers:
        if gpus.container in init:
            for hold in _holds_of(gpus):
                known = most.get(hold.uuid, hold)
                most[hold.uuid] = CardHold(
                    hold.uuid,
                    max(hold.units, known.units),
                    max(hold.percent, known.percent),
                    hold.whole or known.whole,
                )
    return tuple(most.values())


def _holds_of(gpus: ContainerGpus) -> tuple[CardHold, ...]:
    whole = gpus.isolation is _WHOLE
    return tuple([CardHold(each.uuid, each.units, each.percent, whole) for each in gpus.shares])


def _summed(containers: Iterable[ContainerGpus]) -> dict[str, CardHold]:
    found: dict[str, CardHold] = {}
    for gpus in containers:
        for hold in _holds_of(gpus):
            known = found.get(hold.uuid)
            if known is not None:
                hold = CardHold(
                    hold.uuid,
                    known.units + hold.units,
                    known.percent + hold.percent,
                    known.whole or hold.whole,
                )
            found[hold.uuid] = hold
    return found


# -- allocations that cannot be read ---------------------------------------------------------


def with_unread(
    pod: PodRequest, allocation: Allocation, cards: Sequence[Card]
) -> tuple[CardHold, ...]:
    """What is known, and of the node's cards those that the pod may hold as well."""
    unread = allocation.unread
    assert unread is not None
    meant = _meant(unread, cards)
    if unread.has_what_it_asks and {card.index for card in meant} == unread.indexes:
        given = _as_asked(pod, meant)
        if given is not None:
            return card_holds(pod, given)
    found = {hold.uuid: hold for hold in card_holds(pod, allocation)}
    for card in meant:
        known = found.get(card.uuid, CardHold(card.uuid, 0, 0, whole=False))
        found[card.uuid] = replace(known, possible=True)
    return tuple(found.values())


def _meant(unread: Unread, cards: Sequence[Card]) -> list[Card]:
    if unread.uuids:
        # A card that is not there now is closed when it is back.
        return [card for card in cards if card.uuid in unread.uuids]
    if unread.indexes and unread.indexes <= {card.index for card in cards}:
        return [card for card in cards if card.index in unread.indexes]
    return list(cards)


def _as_asked(pod: PodRequest, cards: Sequence[Card]) -> Allocation | None:
    """What the pod asks for, on just these cards; None: that is not what it asks for."""
    if any(ask.whole or ask.cards != len(cards) for ask in pod.gpus):
        return None
    if len(pod.gpus) > 1 and len(cards) > 1:
        return None
    return Allocation(tuple(_share_of(ask, cards) for ask in pod.gpus))


def _share_of(ask: GpuAsk, cards: Sequence[Card]) -> ContainerGpus:
    shares = tuple(
        CardShare(
            card.uuid,
            card.index,
            ask.units,
            limit_mib(ask.units, card) if card.units else 0,
            card.units,
            ask.percent,
        )
        for card in cards
    )
    return ContainerGpus(ask.container, shares, Isolation.NONE)
