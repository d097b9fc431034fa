"""How much of each card is free, in thousandths of the card, and which cards a share fits on."""

import numpy as np

from gpupool.engine.policies.policy import WHOLE, Ask, CardColumns, Ints, of_nodes


def free_milli(columns: CardColumns, nodes: Ints) -> Ints:
    """(C, k): what is free of memory or of compute, whichever is less."""
    total = of_nodes(columns.card_total, nodes)
    memory = of_nodes(columns.card_free, nodes) * WHOLE // total
    compute = of_nodes(columns.card_compute, nodes) * (WHOLE // 100)
    least: Ints = np.minimum(memory, compute)
    return least


def fitting_cards(columns: CardColumns, ask: Ask, node: int) -> list[int]:
    """Indexes of the cards that can take the ask's part of one card."""
    free = columns.card_free[:, node].tolist()  # plain numbers are faster for a few cards
    compute = columns.card_compute[:, node].tolist()
    return [
        card
        for card, left in enumerate(free)
        if left >= ask.memory and compute[card] >= ask.compute
    ]


def tightest_cards(columns: CardColumns, ask: Ask, node: int) -> tuple[int, ...]:
    """The cards with the least to spare; of equal ones the first."""
    free = columns.card_free[:, node].tolist()
    fitting = sorted(fitting_cards(columns, ask, node), key=free.__getitem__)
    return tuple(sorted(fitting[: ask.cards]))


def emptiest_cards(columns: CardColumns, ask: Ask, node: int) -> tuple[int, ...]:
    """The cards with the most to spare; of equal ones the first."""
    free = columns.card_free[:, node]
    fitting = sorted(fitting_cards(columns, ask, node), key=lambda card: -int(free[card]))
    return tuple(sorted(fitting[: ask.cards]))
