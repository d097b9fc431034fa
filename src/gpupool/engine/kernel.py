"""The compiled part of the engine (native/engine/), for what is done thousands of times a second.

Everything here has a twin in Python and NumPy that gives the same numbers, and works without it:
LIBRARY is None where the native parts were not built. The structures hold addresses of NumPy
arrays, and keep those arrays alive. Calls hold the interpreter's lock, so no array changes
meanwhile.

    view_of(columns)        the columns of a cluster, None: use NumPy
    ResidueView             the tables of the policy `residue`
    TypicalView             the typical pods of the policy `fgd`
    ShapeView               the verdict about a shape of pods
"""

import ctypes
import platform
from array import array
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # columns and policies import this module
    from gpupool.engine.columns import Bools, Columns
    from gpupool.engine.policies.policy import Ask, Ints

Reals: TypeAlias = NDArray[np.float64]
LAYOUT = 16  # as in native/engine/engine.h
MOST_ROWS = 64  # cards of a node
BLOCK = 16  # nodes; the columns' size is a multiple of it
GROUP = 16  # of those
FIRST_ROWS = 8  # of `Columns.free`
_MOST = 2**62  # as `columns.MOST`; larger amounts fit nowhere, whatever their number
_MOST_MEMORY = 2**48  # of a card: more fits on none, and this can be multiplied
_ADDRESS: Any = ctypes.c_void_p
_NUMBER: Any = ctypes.c_int64
_REAL: Any = ctypes.c_double
_ARGUMENTS: dict[str, list[Any]] = {
    "layout": [],
    "size_of": [_NUMBER],
    "count": [_ADDRESS, _NUMBER, _ADDRESS, _NUMBER, _NUMBER],
    "judge": [_ADDRESS, _ADDRESS, _ADDRESS, _NUMBER],
    "choose": [_ADDRESS, _ADDRESS, _ADDRESS, _NUMBER, _ADDRESS],
    "best_card": [_ADDRESS, _ADDRESS, _NUMBER, _NUMBER],
    "free": [_ADDRESS, _ADDRESS, _ADDRESS, _NUMBER, _NUMBER, _ADDRESS],
    "to_spare": [_NUMBER, _NUMBER, *[_ADDRESS] * 6],
    "likely": [*[_NUMBER] * 3, *[_ADDRESS] * 5],
    "worth": [_ADDRESS, _ADDRESS, _NUMBER, _ADDRESS, _NUMBER, _ADDRESS],
    "table": [_ADDRESS, _ADDRESS, _NUMBER, _NUMBER, _NUMBER, _ADDRESS],
    "fgd": [_ADDRESS, _ADDRESS, *[_NUMBER] * 3, _ADDRESS, _NUMBER, _ADDRESS],
    "best_cut": [_ADDRESS, _ADDRESS, _NUMBER, _NUMBER, _REAL, *[_ADDRESS] * 3],
}
_COLUMNS = (
    *("free", "card_free", "card_total", "card_compute", "machine", "pods", "cpu_total"),
    *("memory_total", "bulk", "model", "present", "has_cards"),
)


class Library:
    def __init__(self, path: Path) -> None:
        # Not CDLL, which lets other threads run during a call.
        loaded = ctypes.PyDLL(str(path))
        found: dict[str, Any] = {}
        for name, arguments in _ARGUMENTS.items():
            function = found[name] = loaded[f"gpupool_engine_{name}"]
            function.argtypes, function.restype = arguments, _NUMBER
        self.layout, self.size_of = found["layout"], found["size_of"]
        self.count, self.judge, self.choose = found["count"], found["judge"], found["choose"]
        self.best_card, self.best_cut = found["best_card"], found["best_cut"]
        self.free, self.to_spare, self.likely = found["free"], found["to_spare"], found["likely"]
        self.worth, self.table, self.fgd = found["worth"], found["table"], found["fgd"]


def _load() -> Library | None:
    place = Path(__file__).resolve().parent.parent / "_native" / platform.machine()
    try:
        library = Library(place / "engine" / "libgpupool-engine.so")
    except (OSError, AttributeError):  # not built, or built from other sources
        return None
    return library if library.layout() == LAYOUT else None


LIBRARY = _load()


class ColumnsView(ctypes.Structure):
    _fields_ = [
        *[(name, _NUMBER) for name in ("size", "rows", "resources")],
        *[(name, _ADDRESS) for name in (*_COLUMNS, "seen")],
    ]

    def __init__(self, columns: "Columns") -> None:
        arrays = {name: getattr(columns, name) for name in _COLUMNS}
        arrays["seen"] = np.zeros(columns.size // BLOCK, dtype=np.uint16)
        super().__init__(
            size=columns.size,
            rows=len(columns.card_free),
            resources=len(columns.free),
            **{name: each.ctypes.data for name, each in arrays.items()},
        )
        self.address = ctypes.addressof(self)
        self._kept = arrays


def view_of(columns: "Columns") -> ColumnsView | None:
    if columns.view is None and columns.compiled and len(columns.card_free) <= MOST_ROWS:
        columns.view = ColumnsView(columns)
    return columns.view


class ResidueView(ctypes.Structure):
    _fields_ = [
        *[("usable", _ADDRESS), ("worth", _ADDRESS), ("length", _NUMBER)],
        *[("first", _ADDRESS), ("totals", _NUMBER), ("only_total", _NUMBER)],
        *[("counts_compute", _NUMBER), ("cards_for", _REAL * 2)],
    ]

    def __init__(
        self,
        usable: "Ints",
        worth: "Ints",
        first: "Ints",
        only_total: int,
        counts_compute: bool,
        cards_for: Sequence[float],
    ) -> None:
        kept = [np.ascontiguousarray(each, dtype=np.int64) for each in (usable, worth, first)]
        usable, worth, first = kept
        super().__init__(
            usable=usable.ctypes.data,
            worth=worth.ctypes.data,
            length=len(usable),
            first=first.ctypes.data,
            totals=len(first),
            only_total=only_total,
            counts_compute=counts_compute,
            cards_for=tuple(cards_for),
        )
        self.address = ctypes.addressof(self)
        self._kept = kept


class TypicalView(ctypes.Structure):
    _fields_ = [
        *[("count", _NUMBER), ("models", _NUMBER)],
        *[(name, _ADDRESS) for name in ("cards", "memory", "cpu_milli", "weight", "on_model")],
        ("steps", _ADDRESS),
    ]

    def __init__(self, **arrays: "Ints") -> None:
        """As many of each as there are kinds of pods; `on_model` has a row for each. `steps`: see
        `fgd.steps_of`.
        """
        kept = {n: np.ascontiguousarray(each, dtype=np.int64) for n, each in arrays.items()}
        count, models = kept["on_model"].shape
        addresses = {name: each.ctypes.data for name, each in kept.items()}
        super().__init__(count=count, models=models, **addresses)
        self.address = ctypes.addressof(self)
        self._kept = kept


class ShapeView(ctypes.Structure):
    _fields_ = [
        *[("least", _NUMBER * FIRST_ROWS), ("needs", _ADDRESS), ("need_count", _NUMBER)],
        *[("shares", _ADDRESS), ("share_count", _NUMBER)],
        *[(name, _NUMBER) for name in ("cards", "memory", "compute")],
        *[(name, _NUMBER) for name in ("cpu_milli", "memory_bytes")],
        *[(name, _ADDRESS) for name in ("allowed", "costs", "uses")],
        *[(name, _ADDRESS) for name in ("bounds", "groups", "fitting")],
        ("classes", _NUMBER),
        *[(name, _ADDRESS) for name in ("prices", "residue", "typical")],
    ]

    def __init__(
        self,
        needs: Sequence[tuple[int, int]],
        shares: Sequence[tuple[int, int, int]],
        ask: "Ask",
        arrays: "tuple[NDArray[np.uint16], Ints, Ints]",
        policy: ResidueView | TypicalView,
    ) -> None:
        allowed, costs, uses = arrays
        blocks = len(costs) // BLOCK
        # NEVER, as all costs are at first.
        self._bounds = np.full(blocks, np.iinfo(np.int64).max, dtype=np.int64)
        self._groups = np.full(-(-blocks // GROUP), np.iinfo(np.int64).max, dtype=np.int64)
        self._fitting = np.zeros(blocks, dtype=np.uint16)  # a bit for each node
        super().__init__(
            cards=ask.cards,
            memory=min(ask.memory, _MOST),
            compute=ask.compute,
            cpu_milli=min(ask.cpu_milli, _MOST),
            memory_bytes=min(ask.memory_mib << 20, _MOST),
            allowed=allowed.ctypes.data,
            costs=costs.ctypes.data,
            uses=uses.ctypes.data,
            bounds=self._bounds.ctypes.data,
            groups=self._groups.ctypes.data,
            fitting=self._fitting.ctypes.data,
        )
        self.address = ctypes.addressof(self)
        self._shares = _numbers(shares)
        self.shares, self.share_count = self._shares.buffer_info()[0], len(shares)
        self._arrays = arrays
        self.table: object = None  # keeps alive what `prices` points to
        self.set_needs(needs)
        self.set_policy(policy)

    def set_policy(self, policy: ResidueView | TypicalView) -> None:
        """All nodes must be judged again after it."""
        self._policy = policy
        by_residue = isinstance(policy, ResidueView)
        self.residue = policy.address if by_residue else 0
        self.typical = 0 if by_residue else policy.address

    def set_needs(self, needs: Sequence[tuple[int, int]]) -> None:
        """(row of `Columns.free`, amount), whole cards and the largest share too."""
        first = {row: min(amount, _MOST + 1) for row, amount in needs if row < FIRST_ROWS}
        self.least = tuple(first.get(row, 0) for row in range(FIRST_ROWS))
        others = [(row, amount) for row, amount in needs if row >= FIRST_ROWS]
        self._needs = _numbers(others)
        self.needs, self.need_count = self._needs.buffer_info()[0], len(others)


def _numbers(rows: Sequence[tuple[int, ...]]) -> "array[int]":
    return array("q", [min(each, _MOST + 1) for row in rows for each in row])


def free_by_class(
    library: Library,
    columns: ColumnsView,
    residue: ResidueView,
    places: Sequence[Sequence[tuple[int, int, int]]],
    classes: int,
) -> Reals:
    """As `supply.free_of`."""
    sizes = len(places[0])
    found = np.zeros((classes, sizes), dtype=np.int64)
    of_places = array("q", chain.from_iterable(chain.from_iterable(places)))
    library.free(
        columns.address,
        residue.address,
        of_places.buffer_info()[0],
        sizes,
        classes,
        found.ctypes.data,
    )
    return found.astype(np.float64)


def rises_by(
    library: Library, columns: ColumnsView, typical: TypicalView, ask: "Ask", nodes: "Ints"
) -> "Ints":
    """As `fgd.rises_of`."""
    nodes = np.ascontiguousarray(nodes, dtype=np.int64)
    found = np.empty((columns.rows if ask.memory else 1, len(nodes)), dtype=np.int64)
    library.fgd(
        columns.address,
        typical.address,
        ask.cards,
        min(ask.memory, _MOST_MEMORY),
        min(ask.cpu_milli, _MOST),
        nodes.ctypes.data,
        len(nodes),
        found.ctypes.data,
    )
    return found


def spare_by(
    library: Library, inside: "Bools", there_is: Reals, coming: Reals, variance: Reals
) -> tuple[Reals, Reals]:
    """As `scarcity.spare_of`. Changes `coming` and `variance`."""
    spare, spread = np.empty_like(coming), np.empty_like(coming)
    arrays = (inside, there_is, coming, variance, spare, spread)
    library.to_spare(*coming.shape, *[each.ctypes.data for each in arrays])
    return spare, spread


def likely_by(library: Library, has: "Bools", spare: Reals, spread: Reals) -> Reals:
    """As `scarcity.likely_of`."""
    (sets, classes), (_, sizes) = has.shape, spare.shape
    found, risks = np.empty((classes, sizes)), np.empty_like(spare)
    arrays = [each.ctypes.data for each in (has, spare, spread, risks, found)]
    library.likely(sets, sizes, classes, *arrays)
    return found


def worth_by(
    library: Library, likely: Reals, sizes: Sequence[int], cards: Sequence[int], most: int
) -> "Ints":
    """As `scarcity.worth_of`."""
    found, likely = np.empty((len(cards), most + 1), dtype=np.int64), np.ascontiguousarray(likely)
    of_sizes, of_cards = array("q", sizes), array("q", cards)
    library.worth(
        likely.ctypes.data,
        of_sizes.buffer_info()[0],
        len(sizes),
        of_cards.buffer_info()[0],
        len(cards),
        found.ctypes.data,
    )
    return found


class CompiledCuts:
    """As `cutting.Cuts`. What `best` returns is valid until it is called again."""

    def __init__(self, library: Library, cuts: Sequence[int], steps: int, nearly: float) -> None:
        self.values = np.zeros(len(cuts))
        self._cuts, self._taken = array("q", cuts), np.zeros(steps + 1, dtype=np.int64)
        self._worth, self._pattern = np.zeros(steps + 1), np.zeros(len(cuts))
        address, count = self._cuts.buffer_info()
        results = [each.ctypes.data for each in (self._worth, self._taken, self._pattern)]
        arguments = (address, self.values.ctypes.data, count, steps, nearly, *results)
        self._search = partial(library.best_cut, *arguments)

    def best(self) -> tuple[Reals, Reals]:
        self._search()
        return self._worth, self._pattern
