"""best-fit: the node with the least GPU and CPU left over, and on it the fullest card that fits.

Simple, needs no statistics, and keeps nodes empty; but what is left on a card is often useless.
"""

from gpupool.engine.policies.free_cards import free_milli, tightest_cards
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ask, CardColumns, Ints, Policy

# The weight of a card against a CPU: large machines have 8 cards and 128 CPUs.
CPUS_FOR_A_CARD = 16


def best_fit(mix: Mix) -> Policy:
    return Policy("best-fit", left_over, tightest_cards)


def left_over(columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    """What the pod takes is the same on every node, so it is not subtracted."""
    gpu: Ints = free_milli(columns, nodes).sum(axis=0)
    return gpu * CPUS_FOR_A_CARD + columns.cpu_free[nodes]
