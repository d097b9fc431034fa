"""Policy: its functions, and the part of the cluster that it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpupool.engine.kernel import ColumnsView, ResidueView, TypicalView

if TYPE_CHECKING:  # imports this module
    from gpupool.engine.policies.places import Places

Ints: TypeAlias = NDArray[np.signedinteger[Any]]
Floats: TypeAlias = NDArray[np.float64]
WHOLE = 1000  # a card, in thousandths of it
BULKS = 2**22  # `bulk_of` is below this
# 6, 8 and 8 bits of `bulk_of`.
_MOST_CARDS, _MOST_CPU, _MOST_MEMORY = 63, 255, 255
_CPU_STEP = 2_000  # thousandths
_MEMORY_STEP = 16 * 1024  # MiB


class Ask(NamedTuple):
    """What a pod asks of one node, as policies see it. Hashable: costs are cached by it."""

    cards: int  # how many; 0: no GPU
    memory: int  # of each of them, in the columns' unit; 0: whole cards
    compute: int  # percent of each of them; 0: not stated
    cpu_milli: int
    memory_mib: int  # of the host


class CardColumns(Protocol):
    """The part of the engine's columns that policies read: N nodes, up to C cards on each.

    A card that cannot be used (absent, unhealthy, cordoned) has nothing free and a total of 1.
    """

    @property
    def card_free(self) -> Ints: ...  # (C, N) memory that nobody holds, in any unit
    @property
    def card_total(self) -> Ints: ...  # (C, N) memory of the card, never 0, in the same unit
    @property
    def card_compute(self) -> Ints: ...  # (C, N) percent of compute that nobody holds
    @property
    def cpu_free(self) -> Ints: ...  # (N,) in thousandths
    @property
    def host_free(self) -> Ints: ...  # (2, N) CPU in thousandths, memory in bytes
    @property
    def model(self) -> Ints: ...  # (N,) which model the node's cards are, as the mix numbers them
    @property
    def bulk(self) -> Ints: ...  # (N,) how large a machine it is: cards, then CPU, then memory
    @property
    def view(self) -> ColumnsView | None: ...  # the same for `kernel.py`; None: use NumPy


def of_nodes(by_row: Ints, nodes: Ints) -> Ints:
    """(C, k): a (C, N) array of these nodes. What a node has lies side by side in memory, where a
    `take` along the nodes would first make a copy of the whole array.
    """
    found: Ints = by_row.T.take(nodes, axis=0).T
    return found


class PriceTable(NamedTuple):
    values: Ints  # a price for each `use` (`verdicts.py`), int64
    address: int  # of the values


def price_table(values: Ints) -> PriceTable:
    return PriceTable(values, values.ctypes.data)


class Prices(NamedTuple):
    """What a pod pays, beside its cost, for what it takes from other pods: see `scarcity.py`."""

    # Arguments: number of cards, thousandths of all of them.
    table: Callable[[int, int], PriceTable]
    # None: pods need not leave any to larger ones (`last_places.py`).
    places: "Places | None" = None


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    costs: Callable[[CardColumns, Ask, Ints], Ints]
    cards: Callable[[CardColumns, Ask, int], tuple[int, ...]]
    # The same as `costs` for one node; None: there is nothing faster than `costs`.
    cost: Callable[[CardColumns, Ask, int], int] | None = None
    # New prices make a new policy with the same functions, and cached costs stay valid.
    prices: Prices | None = None
    # (N,): thousandths of cards that pods can use of every node; None: the policy has no prices.
    usable: Callable[[CardColumns], Ints] | None = None
    # What `kernel.py` needs to compute the same costs; None: it cannot.
    compiled: ResidueView | TypicalView | None = None


def bulk_of(cards: int, cpu_milli: int, memory_mib: int) -> int:
    """How large a machine is, as one number of 22 bits: by its cards, then CPU, then memory."""
    cpu = min(cpu_milli // _CPU_STEP, _MOST_CPU)
    memory = min(memory_mib // _MEMORY_STEP, _MOST_MEMORY)
    return (min(cards, _MOST_CARDS) << 16) + (cpu << 8) + memory
