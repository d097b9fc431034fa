"""The heat view's data: three characters for each card. Pure.

A page of 40,000 cards as HTML would be 20 MB. So the browser gets one short text for each node and
draws squares (`static/heat.js`); after a change it asks for the nodes that have changed since.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zlib import crc32

from gpupool.console.colours import By, Palette, use_class
from gpupool.console.gpus import CardView, NodeView, Overview
from gpupool.core.gpu import CardHealth
from gpupool.core.readings import CardReading

STEPS = 20  # into which a card is divided: the second character is "0" to "D"
_CODES = {f"use{level}": "abcdef"[level] for level in range(6)} | {"use-unknown": "u"}
_NOBODY = "-"


@dataclass(frozen=True, slots=True)
class Heat:
    palette: Palette
    readings: Mapping[str, CardReading]  # by uuid
    means: Callable[[NodeView, CardView], bool]  # others are dim

    @property
    def digest(self) -> str:
        """Of all that colours depend on beside the cards."""
        used = sorted((uuid, card.memory_used_mib) for uuid, card in self.readings.items())
        text = f"{self.palette.by} {sorted(self.palette.slots.items())} {used}"
        return f"{crc32(text.encode()):08x}"

    def nodes(self, found: Overview, since: int) -> tuple[bool, list[list[str]]]:
        """Whether these are all nodes, and for each: name, pool, and the text of its cards.
        `since`: the version that the browser has; -1: none."""
        is_whole = not found.shape <= since <= found.version
        wanted = found.nodes if is_whole else (n for n in found.nodes if n.version > since)
        return is_whole, [[node.name, node.pool, self.text(node)] for node in wanted]

    def text(self, node: NodeView) -> str:
        return "".join(self._card(node, view) for view in node.cards)

    def _card(self, node: NodeView, view: CardView) -> str:
        units = view.card.units
        filled = min(STEPS, -(-STEPS * view.used // units)) if units else STEPS
        state = _state(view)
        if not self.means(node, view):
            state = state.upper()
        return f"{self._colour(node, view)}{chr(48 + filled)}{state}"

    def _colour(self, node: NodeView, view: CardView) -> str:
        if not view.parts:
            return _NOBODY
        if self.palette.by is By.USE:
            return _CODES[use_class(self._used_percent(view))]
        largest = max(view.parts, key=lambda part: part.units)
        return self.palette.of(node, largest, None).removeprefix("c")

    def _used_percent(self, view: CardView) -> int | None:
        """Of what is allocated of the card."""
        reading, card = self.readings.get(view.card.uuid), view.card
        if reading is None or reading.memory_used_mib is None or not card.units or not view.used:
            return None
        return -(-100 * reading.memory_used_mib * card.units // (view.used * card.memory_mib))


def _state(view: CardView) -> str:
    """h: takes pods, w: one pod has all of it, c: cordoned, s: sick or closed."""
    if view.card.health is CardHealth.CORDONED:
        return "c"
    if not view.card.takes_pods or view.is_closed:
        return "s"
    return "w" if view.is_whole else "h"
