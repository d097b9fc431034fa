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


class Places(NamedTuple):
    """(M, MOST_CARDS + 1), by class of machines: what so many untouched cards of a node are worth,
    in thousandths of cards.
    """

    beside_small: Ints
    # Beside other pods of several cards: every card counts by the part of those pods that has no
    # place, so that all sizes get in about as often.
    beside_large: Ints

    def loss(self, machine: int, untouched: int, taken: int) -> int:
        """What other pods lose if one takes so many of the cards, beyond what they are worth to it.

        Only whole places count: a machine with one card in use is no place for a pod that wants all
        of them.
        """
        worth = (self.beside_small if taken == 1 else self.beside_large)[machine]
        return int(worth[untouched] - worth[untouched - taken] - worth[taken])


def places_of(likely: Floats, sizes: Sequence[int], unserved: Floats) -> Places:
    single, large = worth_by_size(likely, sizes)
    fair = np.maximum(single[:, np.newaxis], _LARGE * WHOLE * likely * unserved)
    # Rounded before they are added up: else a pod that takes nothing from anybody would leave a
    # place because of a thousandth.
    alone = np.rint(single)
    worth = (worth_of_places(alone, np.rint(by_size), sizes) for by_size in (large, fair))
    return Places(*(each.astype(np.int64) for each in worth))


def unserved_of(wanted: Floats, running: Floats, sizes: Sequence[int]) -> Floats:
    """(Z,): the part of the pods of each size that has no place, 0 to 1.

    `wanted`, `running`: (S, Z), in places. A large pod counts as several smaller places, too.
    """
    want, held = wanted.sum(axis=0), running.sum(axis=0)
    # From the largest down, each by its own pods: of 8 cards are four places for 2 and two for 3,
    # and these two are only two for 2.
    for at in range(len(sizes) - 2, 0, -1):
        for larger in range(at + 1, len(sizes)):
            of_larger = sizes[larger] // sizes[at]
            want[at] -= of_larger * want[larger]
            held[at] -= of_larger * held[larger]
    served: Floats = np.clip(held / np.maximum(want, 1e-9), 0, 1)
    return 1 - served


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
