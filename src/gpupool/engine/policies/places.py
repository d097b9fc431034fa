"""Places for pods of several cards: what untouched cards of a node are worth, and who loses some.

A place is as many untouched cards of one node as such pods ask for. How likely places are missed
says `scarcity.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpupool.engine.policies.policy import WHOLE, Floats, Ints

MOST_CARDS = 16  # untouched cards of a node beyond these do not count
# To lose a pod with the most cards that pods ask for counts as much as to lose this many times its
# cards in small pods: small ones soon find another place, and large ones do not. With half as many
# cards it counts three quarters of that for each card: else two places for four would be worth as
# much as one for eight, and nothing would keep the latter together.
_LARGE = 4


class Place(NamedTuple):
    """What a pod of so many cards needs of a machine. Half of the pods of that size that fit on
    such a machine ask for no more.
    """

    cards: int
    cpu_milli: int = 0
    memory_mib: int = 0


class Room(NamedTuple):
    """What nobody holds of a node."""

    untouched: int  # cards
    cpu_milli: int
    memory_mib: int

    def places(self, place: Place) -> int:
        """How many pods find all that they need."""
        cards, cpu, memory = place
        found = self.untouched // cards
        if cpu:
            found = min(found, self.cpu_milli // cpu)
        return min(found, self.memory_mib // memory) if memory else found

    def after(self, taken: Place) -> "Room":
        return Room(*(left - part for left, part in zip(self, taken, strict=True)))


class Places(NamedTuple):
    """(M, MOST_CARDS + 1), by class of machines: what so many untouched cards of a node are worth,
    in thousandths of cards.
    """

    needs: Sequence[Sequence[Place]]  # M; the first of each is one card, whatever is beside it
    beside_small: Ints
    # Beside other pods of several cards: every card counts by the part of those pods that has no
    # place, so that all sizes get in about as often.
    beside_large: Ints

    def loss(self, machine: int, before: Room, after: Room) -> int:
        """What other pods lose if one takes so much of a node, beyond what its cards are worth to
        itself.

        Only whole places count: a machine with one card in use is no place for a pod that wants all
        of them.
        """
        taken = before.untouched - after.untouched
        worth, sizes = self.beside_large if taken > 1 else self.beside_small, self.needs[machine]
        left = worth[machine, _usable(sizes, after)] + worth[machine, taken]
        return int(worth[machine, _usable(sizes, before)] - left)


def _usable(sizes: Sequence[Place], room: Room) -> int:
    """The untouched cards without those for which pods of several cards find no CPU or memory."""
    most = fed = 0
    for place in sizes[1:]:
        most = max(most, room.untouched // place.cards * place.cards)
        fed = max(fed, room.places(place) * place.cards)
    return room.untouched - (most - fed)


def places_of(likely: Floats, places: Sequence[Sequence[Place]], unserved: Floats) -> Places:
    """`places`: (M, Z)."""
    sizes = [place.cards for place in places[0]]
    single, large = worth_by_size(likely, sizes)
    fair = np.maximum(single[:, np.newaxis], _LARGE * WHOLE * likely * unserved)
    # Rounded before they are added up: else a pod that takes nothing from anybody would leave a
    # place because of a thousandth.
    alone = np.rint(single)
    worth = (worth_of_places(alone, np.rint(by_size), sizes) for by_size in (large, fair))
    return Places(places, *(each.astype(np.int64) for each in worth))


def unserved_of(wanted: Floats, running: Floats, sizes: Sequence[int]) -> Floats:
    """(Z,): the part of the pods of each size that has no place, 0 to 1.

    `wanted`, `running`: (S, Z), in places.
    """
    want, held = (own_of(places.sum(axis=0), sizes) for places in (wanted, running))
    served: Floats = np.clip(held / np.maximum(want, 1e-9), 0, 1)
    return 1 - served


def own_of(places: Floats, sizes: Sequence[int]) -> Floats:
    """(..., Z): those of pods of each size alone, where a large pod counts as smaller places, too.

    From the largest size down: 8 cards are four places for 2 and two for 3, and these two are only
    two for 2.
    """
    own = places.copy()
    for at in range(len(sizes) - 2, 0, -1):
        for larger in range(at + 1, len(sizes)):
            own[..., at] -= sizes[larger] // sizes[at] * own[..., larger]
    return own


def worth_by_size(likely: Floats, sizes: Sequence[int]) -> tuple[Floats, Floats]:
    """(M,) what a card is worth that is used alone; (M, Z) one of so many that are used at once."""
    single = likely[:, 0] * WHOLE
    for_size = _LARGE * WHOLE * (0.5 + 0.5 * np.array(sizes) / sizes[-1])
    return single, np.maximum(single[:, np.newaxis], for_size * likely)


def worth_of_places(single: Floats, large: Floats, sizes: Sequence[int]) -> Floats:
    """(M, MOST_CARDS + 1): the best way to cut so many untouched cards into places for pods."""
    worth = [np.zeros(len(single))]
    for untouched in range(1, MOST_CARDS + 1):
        best = worth[-1] + single
        for at, size in enumerate(sizes[1:], 1):
            if size <= untouched:
                best = np.maximum(best, worth[untouched - size] + size * large[:, at])
        worth.append(best)
    return np.stack(worth, axis=1)
