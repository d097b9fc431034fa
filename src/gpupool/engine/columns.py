"""Columns: what filters, scores and policies read of the cluster, as NumPy vectors over nodes.

A node has the same index in every vector; a card has the same row in every (C, N) array, and a
resource in every (R, N) array. What belongs to one node lies side by side in memory (order "F"): it
is read together. Free amounts are never below 0, even if more is held than there is. Arrays grow by
doubling; indexes without a node are not `present`. Only `node_state.py` writes here.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpupool.core.ways import Ways
from gpupool.engine.kernel import FIRST_ROWS, LIBRARY, ColumnsView
from gpupool.engine.policies.policy import Ints

Bools: TypeAlias = NDArray[np.bool_]

MOST = 2**62  # larger amounts count as this
# Different resources of all nodes together that have a row. One node may list any number of them; a
# pod that asks for a resource without a row fits nowhere.
MOST_RESOURCES = 1024
_FIRST_NODES = 64
_FIRST_CARDS = 8
# Rows of `free`. Row 0 stands for resources that no node has: always 0. What cards leave has rows
# there too, without a name, because it is compared with what a pod needs just as resources are.
UNKNOWN, CPU, MEMORY, WHOLE_FREE, LARGEST_FREE, LARGEST_PART = 0, 1, 2, 3, 4, 7
_FIRST_RESOURCES = {"": UNKNOWN, "cpu": CPU, "memory": MEMORY, "pods": 5, "ephemeral-storage": 6}
MIB_SHIFT = 20
_CACHE_LINE = 64  # bytes


@dataclass(slots=True)
class Cells:
    """The memory of some of the arrays, to write single numbers: for one, NumPy takes several times
    as long. What a node has begins at its index times the number of rows.
    """

    free: memoryview
    rows: int  # of it
    card_free: memoryview
    card_compute: memoryview
    card_rows: int  # of both
    pods: memoryview


class Columns:
    def __init__(self, compiled: bool = True) -> None:
        self.compiled = compiled and LIBRARY is not None
        # The addresses of the arrays below; None: not made yet, or arrays are new since then.
        self.view: ColumnsView | None = None
        self.size = _FIRST_NODES
        self.resource_rows = dict(_FIRST_RESOURCES)
        self.present: Bools = np.zeros(self.size, dtype=np.bool_)
        self.unschedulable: Bools = np.zeros(self.size, dtype=np.bool_)
        self.taints = _zeros(self.size)  # number of the set of taints
        self.mode = _zeros(self.size)  # index into `node_state.MODES`
        self.way = _zeros(self.size)  # index into `ways`
        self.ways: list[Ways | None] = [None]  # how cards get into containers; None: unknown
        self.has_cards: Bools = np.zeros(self.size, dtype=np.bool_)
        self.model = _zeros(self.size)
        self.machine = _zeros(self.size)  # its class, a number of `ClusterModel.machines`
        self.pods = _zeros(self.size)  # number of pods held
        self.free = _zeros(self.size, FIRST_ROWS, dtype=np.int64).T
        self.offered = _zeros(self.size, FIRST_ROWS, dtype=np.int64).T  # by the same rows
        self.cpu_total = _zeros(self.size, dtype=np.int64)
        self.memory_total = _zeros(self.size, dtype=np.int64)
        self.bulk = _zeros(self.size, dtype=np.int64)  # how large the machine is, see `bulk_of`
        self.card_free = _zeros(self.size, _FIRST_CARDS).T
        # 1 where there is no card, because policies divide by it.
        self.card_total = _zeros(self.size, _FIRST_CARDS).T + 1
        self.card_compute = _zeros(self.size, _FIRST_CARDS).T
        self.card_model = _zeros(self.size, _FIRST_CARDS).T  # number of the model; 0: no card
        # The hash of the uuid. Two uuids with one hash would make a filter too generous, no more:
        # `cards.py` compares the uuids themselves.
        self.card_key = _zeros(self.size, _FIRST_CARDS, dtype=np.int64).T
        self.card_models: dict[str, int] = {}  # the numbers, in order from 1
        self.cells = self._cells()

    @property
    def whole_free(self) -> Ints:
        """(N,): cards of which nothing is held."""
        free: Ints = self.free[WHOLE_FREE]
        return free

    @property
    def largest_free(self) -> Ints:
        """(N,): free units of the emptiest card."""
        free: Ints = self.free[LARGEST_FREE]
        return free

    @property
    def largest_part(self) -> Ints:
        """(N,): the same of the cards that are not untouched."""
        free: Ints = self.free[LARGEST_PART]
        return free

    @property
    def cpu_free(self) -> Ints:
        free: Ints = self.free[CPU]
        return free

    @property
    def host_free(self) -> Ints:
        """(2, N): CPU in thousandths, memory in bytes."""
        free: Ints = self.free[CPU : MEMORY + 1]
        return free

    @property
    def memory_free(self) -> Ints:
        """(N,): in MiB."""
        free: Ints = self.free[MEMORY] >> MIB_SHIFT
        return free

    def add_resources(self, names: Iterable[str]) -> None:
        new = [name for name in names if name not in self.resource_rows]
        del new[MOST_RESOURCES - len(self.resource_rows) :]
        if new:
            first = len(self.free)
            self.resource_rows |= {name: first + at for at, name in enumerate(new)}
            # A new array: readers must take `free` from here each time, and not keep it.
            shape = (first + len(new), self.size)
            self.free, self.offered = _grown(self.free, shape), _grown(self.offered, shape)
            self.view, self.cells = None, self._cells()

    def model_number(self, model: str) -> int:
        return self.card_models.setdefault(model, len(self.card_models) + 1)

    def way_number(self, ways: Ways | None) -> int:
        """Ways that differ only in words have one number: there must not be many."""
        if ways is not None:
            ways = replace(ways, problem="", known=(), is_pinned=False)
        if ways not in self.ways:
            self.ways.append(ways)
        return self.ways.index(ways)

    def make_room(self, nodes: int, cards: int) -> None:
        """Grow the arrays to at least this many nodes, and cards on each node."""
        size = self.size
        while size < nodes:
            size *= 2
        rows = len(self.card_free)
        while rows < cards:
            rows *= 2
        if size == self.size and rows == len(self.card_free):
            return
        for name, array in vars(self).items():
            if not isinstance(array, np.ndarray):
                continue
            # The prefix tells arrays by card from arrays by resource: a new array with a row for
            # each card must have it too.
            height = rows if name.startswith("card_") else len(array)
            shape = (size,) if array.ndim == 1 else (height, size)
            setattr(self, name, _grown(array, shape, 1 if name == "card_total" else 0))
        self.size = size
        self.view, self.cells = None, self._cells()

    def _cells(self) -> Cells:
        return Cells(
            _flat(self.free, "q"),
            len(self.free),
            _flat(self.card_free, "i"),
            _flat(self.card_compute, "i"),
            len(self.card_free),
            _flat(self.pods, "i"),
        )


def _zeros(*shape: int, dtype: Any = np.int32) -> Ints:
    made: Ints = np.zeros(shape, dtype=dtype)
    return made


def _flat(array: NDArray[Any], code: Literal["i", "q"]) -> memoryview:
    return array.T.data.cast("B").cast(code)


def _grown(array: NDArray[Any], shape: tuple[int, ...], filler: int = 0) -> NDArray[Any]:
    larger = _side_by_side(array.dtype, shape)
    larger.fill(filler)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger


def _side_by_side(dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """In order "F", from the beginning of a cache line on, so that a node has no more lines than it
    needs: that is what most of the time goes into where thousands of nodes are judged.
    """
    length = math.prod(shape) * dtype.itemsize
    raw = np.empty(length + _CACHE_LINE, dtype=np.uint8)
    first = -raw.ctypes.data % _CACHE_LINE
    return raw[first : first + length].view(dtype).reshape(shape[::-1]).T
