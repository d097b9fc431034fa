"""How much of the free part of a card the workload can use: the relaxed cutting-stock problem.

Cards are cut into the sizes that pods ask for. The linear relaxation, solved by column generation
(Gilmore and Gomory), gives each size a value in cards. A free part is worth the most valuable set
of sizes that fits into it. The rest of it is residue: no pod of this workload will use it.

The values jump when the demand changes a little, and future demand is never exactly that of the
past. So the mean over several slightly different demands is taken.
"""

from collections.abc import Mapping
from math import gcd

import numpy as np
from numpy.typing import NDArray

from gpupool.engine.kernel import LIBRARY, CompiledCuts
from gpupool.engine.policies.policy import WHOLE, Ints

_MOST_STEPS = 256  # resolution of sizes: steps per card
_MOST_ROUNDS = 200  # far more than needed; stopping early only makes a worse table
NEARLY = 1e-9
_VARIANTS = 7
_VARIATION = 0.4  # the demand for each size varies by up to e**0.4


def usable_milli(demand: Mapping[int, int], total: int) -> Ints:
    """For 0..total free on a card: how much of that can be used, in thousandths of the card.

    `demand`: how many cards' parts of each size are asked for; a whole card is `total`.
    """
    sizes = sorted(size for size in demand if 0 < size <= total)
    if not sizes:
        return np.arange(total + 1) * WHOLE // total
    unit = gcd(total, *sizes)
    if total // unit > _MOST_STEPS:
        unit = -(-total // _MOST_STEPS)
    steps = total // unit
    rounded: dict[int, int] = {}
    for size in sizes:
        cut = min(-(-size // unit), steps)
        rounded[cut] = rounded.get(cut, 0) + demand[size]
    amounts = np.array(list(rounded.values()), dtype=np.float64)
    there_is = np.arange(steps + 1) / steps
    variants = [
        np.minimum(_worth(list(rounded), amounts * by, steps), there_is)
        for by in _variations(len(amounts))
    ]
    usable = np.floor(np.mean(variants, axis=0) * WHOLE + 0.5).astype(np.int64)
    free = np.arange(total + 1)
    most: Ints = np.minimum(usable[np.minimum(free // unit, steps)], free * WHOLE // total)
    return most


def _variations(sizes: int) -> list[NDArray[np.float64]]:
    """Factors for the demand of each size: first all 1, then pseudo-random but deterministic."""
    phases = 12.9898 * np.arange(1, sizes + 1)
    return [np.exp(_VARIATION * np.sin(variant * phases)) for variant in range(_VARIANTS)]


def _worth(cuts: list[int], demand: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The value of 0..steps free steps, a whole card being worth 1."""
    search = Cuts(cuts, steps) if LIBRARY is None else CompiledCuts(LIBRARY, cuts, steps, NEARLY)
    patterns = np.diag([float(steps // cut) for cut in cuts])
    for _ in range(_MOST_ROUNDS):
        inverse = np.linalg.inv(patterns)
        np.maximum(np.add.reduce(inverse), 0.0, out=search.values)
        worth, entering = search.best()
        if worth[steps] <= 1 + NEARLY:
            break
        _exchange(patterns, inverse @ demand, inverse @ entering, entering)
    scaled: NDArray[np.float64] = worth / max(worth[steps], NEARLY)
    return scaled


def _exchange(
    patterns: NDArray[np.float64],
    use: NDArray[np.float64],
    change: NDArray[np.float64],
    entering: NDArray[np.float64],
) -> None:
    """Replace the pattern that is used up first: the ratio test of the simplex method."""
    ratios = np.full(len(use), np.inf)
    falls = change > NEARLY
    ratios[falls] = np.maximum(use[falls], 0.0) / change[falls]
    patterns[:, int(ratios.argmin())] = entering


class Cuts:
    """A search for the best cuts by `values`, which the caller sets. As `CompiledCuts`."""

    def __init__(self, cuts: list[int], steps: int) -> None:
        self._cuts, self._steps = cuts, steps
        self.values = np.zeros(len(cuts))

    def best(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The worth of the best cut of every length up to a card, and the pattern for a card."""
        worth, taken = self._best_cuts()
        pattern = np.zeros(len(self._cuts))
        length = self._steps
        while length > 0:
            if taken[length] < 0:
                length -= 1
                continue
            pattern[taken[length]] += 1
            length -= self._cuts[taken[length]]
        return np.array(worth), pattern

    def _best_cuts(self) -> tuple[list[float], list[int]]:
        """The worth of every length, and the last cut of it; -1: none."""
        worth = [0.0] * (self._steps + 1)
        taken = [-1] * (self._steps + 1)
        values = self.values.tolist()
        priced = [(cut, values[at], at) for at, cut in enumerate(self._cuts)]
        for length in range(1, self._steps + 1):
            best, last = worth[length - 1], -1
            for cut, value, at in priced:
                if cut <= length and worth[length - cut] + value > best + NEARLY:
                    best, last = worth[length - cut] + value, at
            worth[length], taken[length] = best, last
        return worth, taken
