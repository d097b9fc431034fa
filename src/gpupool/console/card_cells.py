"""Cells of the map: a card as it is drawn, with a segment for each pod. Pure.

`templates/parts/cards.html` draws them, on the map, the overview and the page of a node.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpupool.console.colours import Palette
from gpupool.console.glossary import HEALTH, WALLS
from gpupool.console.gpus import CardView, NodeView, Part
from gpupool.console.parts.cells import Level, State
from gpupool.console.render import exact
from gpupool.console.rows.pods import PodRow
from gpupool.console.said import said
from gpupool.console.words import Translate
from gpupool.core.gpu import CardHealth, limit_mib
from gpupool.core.readings import CardReading

PodKey = tuple[str, str]  # namespace and name


@dataclass(frozen=True, slots=True)
class Segment:
    id: str
    kind: str  # classes: what isolates it, and its colour
    width: int  # percent of the card
    label: str
    title: str  # who it is, on hover
    href: str = ""
    unused: int | None = None  # percent of its share; None: nobody knows
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class CardCell:
    id: str
    href: str
    name: str
    words: str  # allocated, used, temperature
    health: str
    state: State | None  # None: it takes pods
    segments: tuple[Segment, ...]
    is_dim: bool = False  # a filter of the page does not mean it
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is needed to draw cards, beside the cards."""

    t: Translate
    palette: Palette
    readings: Mapping[str, CardReading]  # by uuid
    used: Mapping[tuple[str, str, str], int]  # what `used_of` finds in them
    pods: Mapping[PodKey, PodRow]
    href_of_pod: Callable[[NodeView, Part], str]
    href_of_card: Callable[[NodeView, CardView], str]
    means: Callable[[CardView], bool] = lambda _: True
    chosen: str = ""  # uuid of a card, or namespace/name of a pod

    def cells(self, node: NodeView) -> tuple[CardCell, ...]:
        return tuple(self._cell(node, view) for view in node.cards)

    def _cell(self, node: NodeView, view: CardView) -> CardCell:
        card = view.card
        return CardCell(
            id=f"card-{card.uuid}",
            href=self.href_of_card(node, view),
            name=str(card.index),
            words=self._words(view, self.readings.get(card.uuid)),
            health=card.health,
            state=_state(self.t, view),
            segments=(
                *(self._segment(node, view, part) for part in view.parts),
                *self._outside(view),
                *self._free(node, view),
            ),
            is_dim=not self.means(view),
            is_chosen=self.chosen == card.uuid,
        )

    def _words(self, view: CardView, reading: CardReading | None) -> str:
        found = [self.t("{used} / {all} GiB", used=view.used, all=view.card.units)]
        # Of a card that nobody holds or uses, that is all there is to say.
        if reading and reading.memory_used_mib is not None and (view.parts or reading.sm_percent):
            found.append(self.t("{used} GiB used", used=f"{reading.memory_used_mib / 1024:.1f}"))
            found.append("–" if reading.sm_percent is None else f"{reading.sm_percent} %")
        return " · ".join(found)

    def _segment(self, node: NodeView, view: CardView, part: Part) -> Segment:
        used_mib = self.used_mib(view, part)
        share = limit_mib(part.units, view.card) if view.card.units else 0
        percent = None if used_mib is None or not share else -(-100 * used_mib // share)
        colour = self.palette.of(node, part, percent)
        return Segment(
            id=f"part-{view.card.uuid}-{part.namespace}-{part.pod}",
            kind=f"{part.wall_class} {colour}",
            width=part.width(view.card.units),
            label=part.pod,
            title=self._title(view, part, used_mib, share),
            href=self.href_of_pod(node, part),
            unused=None if used_mib is None else part.unused(view.card, used_mib),
            is_chosen=self.chosen == f"{part.namespace}/{part.pod}",
        )

    def used_mib(self, view: CardView, part: Part) -> int | None:
        reading = self.readings.get(view.card.uuid)
        silent = None if reading is None or reading.containers is None else 0
        return self.used.get((view.card.uuid, part.namespace, part.pod), silent)

    def _title(self, view: CardView, part: Part, used_mib: int | None, share: int) -> str:
        t, row = self.t, self.pods.get((part.namespace, part.pod))
        found = [f"{part.namespace}/{part.pod}"]
        if row and row.owner:
            found.append(row.owner)
        if not part.possible:
            found.append(t("{units} of {all} GiB", units=part.units, all=view.card.units))
        found.append(t(WALLS[part.wall_class]))
        if used_mib is not None:
            found.append(t("{used} of {share} MiB used", used=used_mib, share=share))
        if row and row.created:
            found.append(t("since {time}", time=exact(row.created)))
        return " · ".join(found)

    def _outside(self, view: CardView) -> tuple[Segment, ...]:
        card = view.card
        if not card.outside_mib or not card.memory_mib:
            return ()
        width = min(100, round(100 * card.outside_mib / card.memory_mib))
        words = self.t("{mib} MiB are used outside of Kubernetes", mib=card.outside_mib)
        return (Segment(f"outside-{card.uuid}", "foreign", width, self.t("foreign"), words),)

    def _free(self, node: NodeView, view: CardView) -> tuple[Segment, ...]:
        card = view.card
        if not view.free or not card.units:
            return ()
        words = self.t("{free} GiB free", free=view.free)
        if not node.gives_shares:
            words = self.t("{free} GiB free, as a whole card only", free=view.free)
        if not view.card.takes_pods or view.is_closed:
            words = self.t("takes no pods")
        width = round(100 * view.free / card.units)
        return (Segment(f"free-{card.uuid}", "free", width, words, words),)


def _state(t: Translate, view: CardView) -> State | None:
    """None: it takes pods."""
    card = view.card
    if view.is_closed:
        return State(Level.BAD, t("closed"), t("which cards it holds cannot be read"))
    if card.takes_pods:
        return None
    level = Level.WAITS if card.health is CardHealth.CORDONED else Level.BAD
    words = t(HEALTH[card.health])
    if card.reason:
        words = t("{state}: {why}", state=words, why=said(t, card.reason))
    return State(level, words)
