"""spread: the node with the most GPU and CPU left, and on it the emptiest card.

For workloads that suffer from neighbours. Large pods stop fitting long before the cluster is full.
"""

from gpupool.engine.policies.best_fit import left_over
from gpupool.engine.policies.free_cards import emptiest_cards
from gpupool.engine.policies.mix import Mix
from gpupool.engine.policies.policy import Ask, CardColumns, Ints, Policy


def spread(mix: Mix) -> Policy:
    return Policy("spread", _crowding, emptiest_cards)


def _crowding(columns: CardColumns, ask: Ask, nodes: Ints) -> Ints:
    return -left_over(columns, ask, nodes)
