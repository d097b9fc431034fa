"""PlannedMoves: where `gpupool defrag` wants the next pod of a controller, by annotations of nodes.

They are wishes: they reserve nothing, and open nothing that is closed to the pod. Each one is for
one pod. What cannot be read, is over, or lasts too long to be true counts as missing.
"""

import time
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from gpupool.contract.names import ANNOTATION_PLANNED_MOVES
from gpupool.contract.planned_moves import (
    LONGEST_S,
    BadPlannedMoves,
    planned_moves_of,
)
from gpupool.core.gpu import Allocation
from kubeclient.objects import Obj
from kubeclient.times import seconds_of

_MOST_TRIED = 16  # for one pod: each costs as much as a decision


class Wish(NamedTuple):
    """Ordered by their ends: of several, the one that was written first goes first."""

    until_s: float
    node: str
    cards: frozenset[str]  # uuids
    left: str  # uid of the pod that leaves for it


class PlannedMoves:
    def __init__(self, now: Callable[[], float] = time.time) -> None:
        """`now` is the time of day, in which the API speaks."""
        self._now = now
        self._texts: dict[str, str] = {}  # by node; only of nodes that have one
        self._by_node: dict[str, list[tuple[str, Wish]]] = {}  # with their controllers
        self._by_controller: dict[str, list[Wish]] = {}
        self._taken: dict[str, str] = {}  # by the pod that left: uid of the one that took its wish

    def __contains__(self, controller: str) -> bool:
        return controller in self._by_controller

    def node_changed(self, old: Obj | None, new: Obj | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        notes = (new["metadata"].get("annotations") or {}) if new is not None else {}
        text = notes.get(ANNOTATION_PLANNED_MOVES) or ""
        # Nodes change all the time, and hardly any of them has one.
        if text == self._texts.get(name, ""):
            return
        self._texts.pop(name, None)
        self._by_node.pop(name, None)
        if text:
            self._texts[name], self._by_node[name] = text, _wishes(name, text)
        self._sort()

    def of(self, controller: str, uid: str) -> list[Wish]:
        """Those that this pod may take now, in their order."""
        now_s = self._now()
        found = (
            wish
            for wish in self._by_controller.get(controller, ())
            if now_s < wish.until_s <= now_s + LONGEST_S and self._taken.get(wish.left, uid) == uid
        )
        return list(islice(found, _MOST_TRIED))

    def placed(self, controller: str, uid: str, node: str, given: Allocation) -> None:
        """The pod got this. If a wish was for it, no other pod may take that."""
        cards = frozenset(share.uuid for gpus in given.containers for share in gpus.shares)
        for wish in self.of(controller, uid):
            if wish.node == node and cards <= wish.cards and bool(cards) == bool(wish.cards):
                self._taken[wish.left] = uid
                return

    def _sort(self) -> None:
        wishes = [each for found in self._by_node.values() for each in found]
        self._by_controller = {}
        for controller, wish in sorted(wishes, key=lambda each: each[1][:2]):
            self._by_controller.setdefault(controller, []).append(wish)
        left = {wish.left for _, wish in wishes}
        self._taken = {pod: uid for pod, uid in self._taken.items() if pod in left}


def _wishes(node: str, text: str) -> list[tuple[str, Wish]]:
    try:
        moves = planned_moves_of(text)
    except BadPlannedMoves:
        return []
    return [
        (move.controller, Wish(until_s, node, frozenset(move.cards), move.pod))
        for move in moves
        if (until_s := seconds_of(move.until)) is not None
    ]
