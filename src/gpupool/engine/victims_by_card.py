"""cheapest_cards: the pods that would have to leave so that a pod gets cards at the lowest cost.

For each card: the pods that must leave so that the ask fits on it. Then the cheapest cards are
taken, as many as are asked for. Only a hint for `preempt`, which checks everything.
"""

from collections.abc import Sequence

from gpupool.core.gpu import WHOLE_CARD_PERCENT, GpuAsk
from gpupool.core.pods import PodRequest
from gpupool.engine.card_holds import CardHold
from gpupool.engine.node_state import CardState, Held, NodeState, usable_units

_Holder = tuple[Held, CardHold]


def cheapest_cards(
    pod: PodRequest, state: NodeState, below: Sequence[Held], broken: frozenset[str]
) -> frozenset[str]:
    """Uids. `below`: pods of lower priority; `broken`: those whose disruption budget is used up."""
    victims: set[str] = set()
    choice = pod.card_choice
    accepted = [card for card in state.cards if choice is None or choice.takes(card.card)]
    holders: dict[str, list[_Holder]] = {}
    for held in below:
        for hold in held.cards:
            holders.setdefault(hold.uuid, []).append((held, hold))
    # Of equal priority the largest holder first: fewer pods have to leave.
    for on_card in holders.values():
        on_card.sort(key=lambda h: (h[0].pod.uid in broken, h[0].pod.priority, -h[1].units))
    for ask in pod.gpus:
        found = (_must_leave(ask, card, holders.get(card.card.uuid, ())) for card in accepted)
        offers = [leaving for leaving in found if leaving is not None]
        # Of equal price: those that began last have the least to lose. Then the first cards.
        offers.sort(key=lambda leaving: min(map(start_of, leaving), default=""), reverse=True)
        offers.sort(key=lambda leaving: _price(leaving, broken))
        for leaving in offers[: ask.whole or ask.cards]:
            victims |= {held.pod.uid for held in leaving}
    return frozenset(victims)


def cards_after(ask: GpuAsk, state: NodeState, below: Sequence[Held]) -> int:
    """How many cards could take the ask if all of these pods left."""
    leaving: dict[str, list[CardHold]] = {}
    for held in below:
        for hold in held.cards:
            leaving.setdefault(hold.uuid, []).append(hold)
    found = 0
    for card in state.cards:
        holds = leaving.get(card.card.uuid, ())
        if ask.whole:  # any pod that stays is in its way
            found += card.pods == len(holds) and card.whole_at_rest and card.usable
        else:
            found += _takes_share(ask, card, holds)
    return found


def _takes_share(ask: GpuAsk, card: CardState, leaving: Sequence[CardHold]) -> bool:
    units, percent, closers = card.units, card.percent, card.wholes + card.closed
    for hold in leaving:
        closers -= hold.whole + hold.possible
        if not hold.whole:
            units -= hold.units
            percent -= hold.percent
    return _has_room(ask, card, units, percent, closers)


def start_of(held: Held) -> str:
    """A pod that has not started has nothing to lose: it comes after all times."""
    return held.pod.started or "~"


def _must_leave(ask: GpuAsk, card: CardState, holders: Sequence[_Holder]) -> list[Held] | None:
    """None: the ask does not fit even if all of them leave."""
    if not card.usable:
        return None
    units, percent, pods = card.units, card.percent, card.pods
    closers = card.wholes + card.closed
    leaving: list[Held] = []
    # A share is blocked by a pod that has the whole card, or may have it; a whole card by any pod.
    while not _has_room(ask, card, units, percent, closers if not ask.whole else pods):
        if len(leaving) == len(holders):
            return None
        held, hold = holders[len(leaving)]
        leaving.append(held)
        pods -= 1
        closers -= hold.whole + hold.possible
        if not hold.whole:
            units -= hold.units
            percent -= hold.percent
    return leaving


def _has_room(ask: GpuAsk, card: CardState, units: int, percent: int, in_the_way: int) -> bool:
    if in_the_way or not card.usable:
        return False
    if ask.whole:
        return card.whole_at_rest
    return (
        usable_units(card.card) - units >= ask.units and WHOLE_CARD_PERCENT - percent >= ask.percent
    )


def _price(leaving: list[Held], broken: frozenset[str]) -> tuple[int, int, int]:
    return (
        sum(held.pod.uid in broken for held in leaving),
        max((held.pod.priority for held in leaving), default=-(2**31)),
        len(leaving),
    )
