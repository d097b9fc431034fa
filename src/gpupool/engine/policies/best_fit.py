"""best-fit: the node with the least GPU and CPU left over, and on it the fullest card that fits.

Simple, needs no statistics, and keeps nodes empty; what is left on a card is often of no use.
"""

from gpupool.engine.policies.free_cards import free_milli, tightest_cards
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ask, CardColumns, Ints, Policy

# What a card weighs against a CPU: large machines have eight of the one to 128 of the other.
CPUS_FOR_A_CARD = 16


def best_fit(mix: Mix) -> Policy:
    return Policy("best-fit", left_over, tightest_cards)


def left_over(columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    """What the ask itself takes is the same everywhere, so that it need not be taken off."""
    gpu: Ints = free_milli(columns, nodes).sum(axis=0)
    return gpu * CPUS_FOR_A_CARD + columns.cpu_free[nodes]
