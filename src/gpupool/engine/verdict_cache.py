"""What `ClusterModel` keeps so that a decision does not judge every node again.

`ShapeVerdict` is the cached result for pods of one shape: what each node costs. `ChangeLog` is the
order in which nodes changed. Each verdict remembers the position in the log up to which it is
valid; before it is used, `verdicts.py` judges the nodes that the log lists since then. So a
decision on thousands of nodes costs as much as the few nodes that changed since the last one.

This is right as long as every change of a node or of what is held on it is appended to the log.
`ClusterModel` is the only writer. Anything that changes columns without it makes verdicts stale.
"""

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpupool.core.gpu import GpuAsk
from gpupool.core.pods import PodRequest
from gpupool.engine.kernel import ShapeView
from gpupool.engine.policies.policy import Ask, Ints, Policy

if TYPE_CHECKING:  # imports the cluster, which imports this module
    from gpupool.engine.allowed_nodes import AllowedNodes

NEVER = int(np.iinfo(np.int64).max)  # the cost of a node that cannot take the pod
KEPT = 8192  # entries of a log; a reader that is further behind judges all nodes again
ALL_CHANGED = -1  # before all entries of a log: every node must be judged
_ENTRY = 8  # bytes


@dataclass(slots=True)
class ShapeVerdict:
    """What each node costs for pods of one shape under one policy."""

    pod: PodRequest  # any pod of this shape
    policy: Policy
    ask: Ask
    milli: int  # thousandths of a card that it asks for, of the largest card if sizes differ
    need: Ints  # (R, 1): the amount of each resource that the columns count
    needs: list[tuple[int, int]]  # the same as (resource row, amount), without zeros
    whole: int  # whole cards that are needed at the same time
    shares: tuple[GpuAsk, ...]
    nodes: "AllowedNodes"  # those that pass the filters on node objects, whatever is held there
    costs: Ints  # NEVER: not allowed, or no room
    # What the pod would take of each node, as an index into a table of prices (`verdicts.py`); 0
    # where the cost is NEVER.
    uses: Ints
    changes: int  # valid up to this position of `ClusterModel.changes`, or ALL_CHANGED
    node_changes: int  # `needs` is valid up to this position of `ClusterModel.node_changes`
    view: ShapeView | None = None  # for `kernel.py`; None: NumPy judges this shape

    def totals(self, policy: Policy) -> Ints:
        """Costs with the prices of the day. Without prices these are the cached costs."""
        if policy.prices is None or not self.ask.cards:
            return self.costs
        return self.costs + policy.prices.table(self.ask.cards, self.milli).values.take(self.uses)

    def totals_of(self, policy: Policy, nodes: Ints) -> Ints:
        """The same of these nodes, in a new array."""
        costs = self.costs.take(nodes)
        if policy.prices is None or not self.ask.cards:
            return costs
        table = policy.prices.table(self.ask.cards, self.milli).values
        return np.asarray(costs + table.take(self.uses.take(nodes)))

    def least(self, policy: Policy) -> int:
        """The first node with the least cost and price; -1: none fits."""
        totals = self.totals(policy)
        node = int(totals.argmin())
        return -1 if totals[node] == NEVER else node

    def rule_out(self, node: int) -> None:
        self.costs[node] = NEVER
        self.uses[node] = 0


class ChangeLog:
    """Indexes of nodes in the order in which they changed. Readers keep their own position.

    Old entries are dropped, so the log stays small however long the program runs. A position
    stays valid as a number: `_dropped` counts what is gone, `position` all that ever was here.
    """

    __slots__ = ("_address", "_dropped", "_entries", "position")

    def __init__(self) -> None:
        # Of one length, so that it stays where it is: the kernel reads it there.
        self._entries = array("q", bytes(2 * KEPT * _ENTRY))
        self._address, _ = self._entries.buffer_info()
        self._dropped = self.position = 0

    def append(self, node: int) -> None:
        at = self.position - self._dropped
        # In large blocks: every deletion at the front moves all that follows.
        if at == 2 * KEPT:
            self._entries[:KEPT] = self._entries[KEPT:]
            self._dropped += KEPT
            at = KEPT
        self._entries[at] = node
        self.position += 1

    def since(self, position: int) -> list[int] | None:
        """The nodes that changed since `position`; None: those entries were dropped."""
        start = position - self._dropped
        return self._entries[start : self.position - self._dropped].tolist() if start >= 0 else None

    def address_since(self, position: int) -> tuple[int, int]:
        """Where in memory the same nodes are, until the next append, and how many; -1: None."""
        start = position - self._dropped
        if start < 0:
            return 0, -1
        return self._address + start * _ENTRY, self.position - position
