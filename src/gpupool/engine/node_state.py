"""NodeState: one node and what pods hold of it; writes both into the columns.

The sums of holds are exact even if they are more than the node has (another scheduler, a node that
lost capacity): otherwise a later release would leave a wrong sum. The columns then say 0 free.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpupool.core.gpu import (
    WHOLE_CARD_PERCENT,
    Allocation,
    Card,
    CardShare,
    GpuAsk,
    GpuMode,
    limit_mib,
)
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import AttachedVolume, PodRequest
from gpupool.engine.card_holds import CardHold, with_unread
from gpupool.engine.columns import (
    LARGEST_FREE,
    LARGEST_PART,
    MIB_SHIFT,
    MOST,
    UNKNOWN,
    WHOLE_FREE,
    Cells,
    Columns,
)
from gpupool.engine.kernel import LIBRARY, view_of
from gpupool.engine.kinds import Kind
from gpupool.engine.policies.policy import bulk_of
from gpupool.engine.shapes import Amounts, Shape
from kubeclient.placement import HostPort

MODES = (GpuMode.ANY, GpuMode.WHOLE, GpuMode.SHARED)
_MOST_SHARES = 64  # cached CardShare values of a card


@dataclass(slots=True)
class Held:
    """Never changed, and not frozen for the same reason as `CardHold`."""

    pod: PodRequest
    node: str
    allocation: Allocation
    cards: tuple[CardHold, ...]
    shape: Shape
    # Room that is kept for a pod that is not there yet. It counts like a pod, but nobody can evict
    # it, and it may overlap with pods that are about to leave.
    reserved: bool = False
    kind: Kind | None = None  # None: the pod has no GPUs, or is not there yet


class CardState:
    """A card and what pods hold of it. `total`, `free` and `compute` go into the columns."""

    __slots__ = (
        "_alone",
        "_most",
        "_shares",
        "_whole",
        "all_units",
        "card",
        "closed",
        "compute",
        "free",
        "is_untouched",
        "percent",
        "pods",
        "total",
        "units",
        "usable",
        "whole_at_rest",
        "wholes",
    )

    def __init__(self, card: Card) -> None:
        self.card = card
        self.all_units = card.units
        self.usable = card.takes_pods and self.all_units > 0
        self.units = self.percent = 0
        self.wholes = 0  # pods that hold all of it
        self.closed = 0  # pods that may hold it, as far as anybody knows
        self.pods = 0
        self._most = usable_units(card) if self.usable else 0
        # Processes outside of pods may use a little memory of a card that is given out whole, but
        # less than one unit, and they must leave at least one unit free.
        self.whole_at_rest = self._most > 0 and card.outside_mib < card.unit_mib
        full = self.all_units if self.usable else 1  # 1: never reached, because nothing is free
        # `is_untouched` means that all of `total` is free, so that it can be true for such a card.
        self.total = self._most if self.whole_at_rest else full
        self._shares: dict[tuple[int, int], CardShare] = {}
        self._whole: CardShare | None = None
        self._alone: dict[tuple[str, int, int, int, bool], Allocation] = {}
        self._settle()

    def count(self, hold: CardHold, sign: int) -> None:
        self.pods += sign
        if hold.possible:
            self.closed += sign
        if hold.whole:
            self.wholes += sign
        else:
            self.units += sign * hold.units
            self.percent += sign * hold.percent
        self._settle()

    def _settle(self) -> None:
        free, compute = self.left(self.units, self.percent, self.wholes + self.closed)
        self.free, self.compute = free, compute
        self.is_untouched = free == self.total and compute == WHOLE_CARD_PERCENT

    def left(self, units: int, percent: int, closers: int) -> tuple[int, int]:
        """What is free if this is held, in units and percent. `closers`: pods that close it."""
        if closers or not self.usable:
            return 0, 0
        free, compute = self._most - units, WHOLE_CARD_PERCENT - percent
        return free if free > 0 else 0, compute if compute > 0 else 0

    def is_all(self, free: int, compute: int) -> bool:
        return free == self.total and compute == WHOLE_CARD_PERCENT

    def share(self, units: int, percent: int) -> CardShare:
        """Cached: there are few sizes of shares, and many decisions."""
        found = self._shares.get((units, percent))
        if found is None:
            card = self.card
            mib = limit_mib(units, card)
            found = CardShare(card.uuid, card.index, units, mib, card.units, percent)
            if len(self._shares) < _MOST_SHARES:
                self._shares[units, percent] = found
        return found

    def alone(self, ask: GpuAsk, made: Callable[[], Allocation]) -> Allocation:
        """The allocation of a pod that has this ask alone, on this card alone: one value for all
        pods like it. A change of the node makes new cards, so it is not older than the node.
        """
        # A tuple, which is hashed much faster.
        key = (ask.container, ask.whole, ask.units, ask.percent, ask.unisolated)
        found = self._alone.get(key)
        if found is None:
            found = made()
            if len(self._alone) < _MOST_SHARES:
                self._alone[key] = found
        return found

    def whole(self) -> CardShare:
        if self._whole is None:
            card, units = self.card, self.all_units
            self._whole = CardShare(card.uuid, card.index, units, card.memory_mib, units)
        return self._whole


def usable_units(card: Card) -> int:
    """The units that processes outside of Kubernetes leave."""
    if not card.outside_mib or not card.memory_mib:
        return card.units
    return max(0, card.memory_mib - card.outside_mib) * card.units // card.memory_mib


@dataclass(slots=True)
class NodeState:
    index: int
    node: NodeInfo
    cards: list[CardState] = field(default_factory=list)
    card_rows: dict[str, int] = field(default_factory=dict)  # by uuid
    has_links: bool = False  # whether some cards are linked by NVLink
    _sums: dict[str, int] | None = None  # see `held`
    pods: dict[str, Held] = field(default_factory=dict)  # by uid
    ports: list[HostPort] = field(default_factory=list)
    volumes: Counter[AttachedVolume] = field(default_factory=Counter)  # by the pods that use them

    def untouched(self) -> list[int]:
        """Rows of the cards of which nothing is held."""
        return [row for row, card in enumerate(self.cards) if card.is_untouched]

    def take(self, held: Held, columns: Columns) -> None:
        if held.allocation.unread is not None:
            held = self._with_unread(held)
        pod = held.pod
        self.pods[pod.uid] = held
        # Few pods have any, and this runs for every decision.
        if pod.host_ports:
            self.ports.extend(pod.host_ports)
        if pod.attached:
            self.volumes.update(pod.attached)
        self._count(held, 1, columns)

    def give_back(self, uid: str, columns: Columns) -> Held:
        held = self.pods.pop(uid)
        pod = held.pod
        if pod.host_ports:
            for port in pod.host_ports:
                # A list, not a set: two pods may hold the same port, and each release removes one
                # of them.
                self.ports.remove(port)
        if pod.attached:
            for volume in pod.attached:
                self.volumes[volume] -= 1
                # A count of zero must not stay: the keys are the volumes that are attached.
                if not self.volumes[volume]:
                    del self.volumes[volume]
        self._count(held, -1, columns)
        return held

    @property
    def held(self) -> Mapping[str, int]:
        """The sums of all pods, by resource. Made when it is asked for, for decisions do not."""
        if self._sums is None:
            self._sums = {}
            for held in self.pods.values():
                for name, amount in held.pod.resources.items():
                    self._sums[name] = self._sums.get(name, 0) + amount
        return self._sums

    def _count(self, held: Held, sign: int, columns: Columns) -> None:
        """`held` is in `pods`, or not any more."""
        at, cells, view = self.index, columns.cells, view_of(columns)
        self._sums = None
        cells.pods[at] = len(self.pods)
        if held.cards:
            write_cards(self, columns, self.count_cards(held, sign))
        amounts = held.shape.amounts(columns)
        if view is not None and LIBRARY is not None:
            done = LIBRARY.count(view.address, at, amounts.address, amounts.count, sign)
        else:
            sum_cards(self, columns)
            done = take_amounts(cells, at, amounts, sign)
        if not done:
            write_resources(self, columns)

    def _with_unread(self, held: Held) -> Held:
        """Which cards may be meant depends on the cards that the node has now."""
        if held.allocation.unread is None:
            return held
        cards = [card.card for card in self.cards]
        return replace(held, cards=with_unread(held.pod, held.allocation, cards))

    def recount_cards(self) -> None:
        """The cards are new, and have counted nothing yet. Holds of a card that was missing count
        again here when the card is back.
        """
        for uid, held in self.pods.items():
            self.pods[uid] = held = self._with_unread(held)
            self.count_cards(held, 1)

    def count_cards(self, held: Held, sign: int) -> list[int]:
        """The rows of the cards. Cards that are gone are skipped; see `discrepancies.py`."""
        rows = []
        for hold in held.cards:
            row = self.card_rows.get(hold.uuid)
            if row is not None:
                self.cards[row].count(hold, sign)
                rows.append(row)
        return rows


def replace_node(state: NodeState, node: NodeInfo, columns: Columns) -> None:
    """Replace the node and write all its columns again."""
    state.node = node
    cards = node.inventory.cards if node.inventory else ()
    columns.make_room(state.index + 1, len(cards))
    columns.add_resources(node.allocatable)
    state.cards = [CardState(card) for card in cards]
    state.card_rows = {card.uuid: row for row, card in enumerate(cards)}
    state.has_links = any(card.links for card in cards)
    state.recount_cards()
    at = state.index
    columns.present[at] = True
    columns.unschedulable[at] = node.unschedulable
    columns.mode[at] = MODES.index(node.gpu_mode)
    columns.has_cards[at] = bool(cards)
    columns.way[at] = columns.way_number(node.inventory.ways if node.inventory else None)
    columns.pods[at] = len(state.pods)
    columns.cpu_total[at] = _bounded(node.allocatable.get("cpu", 0))
    columns.memory_total[at] = _bounded(node.allocatable.get("memory", 0)) >> MIB_SHIFT
    cpu, memory = int(columns.cpu_total[at]), int(columns.memory_total[at])
    columns.bulk[at] = bulk_of(len(cards), cpu, memory)
    for name, row in columns.resource_rows.items():
        columns.offered[row, at] = _bounded(node.allocatable.get(name, 0))
    write_resources(state, columns)
    # All rows first: the node may have had more cards before, or its index belonged to another
    # node.
    columns.card_free[:, at] = 0
    columns.card_total[:, at] = 1
    columns.card_compute[:, at] = 0
    columns.card_model[:, at] = 0
    columns.card_total[: len(cards), at] = [card.total for card in state.cards]
    columns.card_model[: len(cards), at] = [columns.model_number(card.model) for card in cards]
    columns.card_key[: len(cards), at] = [hash(card.uuid) for card in cards]
    write_cards(state, columns, range(len(cards)))
    sum_cards(state, columns)


def clear_node(state: NodeState, columns: Columns) -> None:
    """Remove the node from the columns."""
    replace_node(state, NodeInfo(state.node.name), columns)
    # After `replace_node`, which sets it.
    columns.present[state.index] = False


def write_resources(state: NodeState, columns: Columns) -> None:
    offered, held = state.node.allocatable, state.held
    for name, row in columns.resource_rows.items():
        if row != UNKNOWN:
            left = offered.get(name, 0) - held.get(name, 0)
            columns.free[row, state.index] = _bounded(left)


def take_amounts(cells: Cells, node: int, amounts: Amounts, sign: int) -> bool:
    """Whether it was done: where nothing is free, more may be held than there is, and only the sums
    of all pods say how much. As native/engine/count.c.
    """
    free, first = cells.free, node * cells.rows
    for row, amount in amounts.rows:
        before = free[first + row]
        if not 0 < before < MOST or not 0 <= amount < MOST:
            return False
        if not 0 <= before - sign * amount < MOST:
            return False
    for row, amount in amounts.rows:
        free[first + row] -= sign * amount
    return True


def write_cards(state: NodeState, columns: Columns, rows: Iterable[int]) -> None:
    """Write what is free of these cards."""
    cards, cells = state.cards, columns.cells
    first = state.index * cells.card_rows
    for row in rows:
        card = cards[row]
        cells.card_free[first + row] = card.free
        cells.card_compute[first + row] = card.compute


def sum_cards(state: NodeState, columns: Columns) -> None:
    """Write what is free of all cards together. As native/engine/count.c."""
    at, cards, free = state.index, state.cards, columns.free
    free[WHOLE_FREE, at] = sum(card.is_untouched for card in cards)
    free[LARGEST_FREE, at] = max((card.free for card in cards), default=0)
    parts = (card.free for card in cards if not card.is_untouched)
    free[LARGEST_PART, at] = max(parts, default=0)


def _bounded(amount: int) -> int:
    return max(0, min(amount, MOST))
