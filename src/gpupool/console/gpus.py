"""gpus: nodes with cards, and which pods hold which parts of them, as values. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from operator import add, attrgetter, sub

from gpupool.console.words import Translate
from gpupool.contract.names import LABEL_POOL
from gpupool.core.gpu import (
    Card,
    CardHealth,
    ContainerGpus,
    GpuAsk,
    GpuMode,
    Inventory,
    Isolation,
    Wall,
)
from gpupool.core.readings import CardReading
from gpupool.engine.node_state import Held, NodeState, usable_units


def wall_word(wall: Wall | None) -> str:
    return str(Isolation.WHOLE if wall is None else wall)


@dataclass(frozen=True, slots=True)
class Part:
    """What one pod holds of one card."""

    namespace: str
    pod: str
    units: int
    percent: int
    isolation: Isolation
    possible: bool = False  # nobody knows whether the pod holds it: the card is closed
    wall: Wall | None = None  # what holds it to its share; None: it has the card

    @property
    def wall_class(self) -> str:
        """What holds it to its share, as one word for style sheets and tables of words."""
        if self.possible:
            return "unknown"
        return wall_word(self.wall)

    def width(self, units: int) -> int:
        """In percent of a card with so many units."""
        return min(100, round(100 * self.units / units)) if units else 100

    def unused(self, card: Card, used_mib: int) -> int:
        """How much of its share it does not use, in percent."""
        share = self.units * card.memory_mib // card.units if card.units else 0
        return max(0, min(100, 100 - 100 * used_mib // share)) if share else 0


@dataclass(frozen=True, slots=True)
class CardView:
    card: Card
    parts: tuple[Part, ...]

    @property
    def is_closed(self) -> bool:
        return any(part.possible for part in self.parts)

    @property
    def used(self) -> int:
        return sum(part.units for part in self.parts)

    @property
    def free(self) -> int:
        """What no pod holds, and no process outside of Kubernetes uses."""
        return max(0, usable_units(self.card) - self.used)

    @property
    def offers(self) -> int:
        """What a new pod could get of it."""
        return self.free if self.card.takes_pods and not self.is_closed else 0

    @property
    def outside(self) -> int:
        """Units that processes outside of Kubernetes take away."""
        return self.card.units - usable_units(self.card)

    @property
    def is_whole(self) -> bool:
        return any(part.isolation is Isolation.WHOLE for part in self.parts)


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    pool: str
    gives_shares: bool  # otherwise it gives whole cards only
    cards: tuple[CardView, ...]
    version: int = 0  # of the cluster, when it was made
    # Made with the view, because lists of all nodes look at them.
    most_free: int = 0  # the most that a new pod could get of one of its cards
    models: tuple[str, ...] = ()
    namespaces: frozenset[str] = frozenset()  # of the pods on its cards


@dataclass(frozen=True, slots=True)
class Totals:
    cards: int = 0
    healthy: int = 0
    free: int = 0  # healthy cards of which no pod holds a part
    units: int = 0
    used: int = 0
    pods: int = 0
    nodes: int = 0  # that have cards

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: "Totals") -> "Totals":
        return Totals(*map(sub, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Overview:
    nodes: tuple[NodeView, ...]  # by name; only those with cards
    totals: Totals
    version: int = 0  # of the cluster
    shape: int = 0  # the version at which a node with cards last came or went
    epoch: str = ""  # versions of another epoch say nothing about this one


def used_of(readings: Mapping[str, CardReading]) -> dict[tuple[str, str, str], int]:
    """MiB that a pod uses of a card, by uuid, namespace and pod; without what nobody knows."""
    found: dict[tuple[str, str, str], int] = {}
    for card in readings.values():
        for use in card.containers or ():
            if use.memory_used_mib is not None:
                key = (card.uuid, use.namespace, use.pod)
                found[key] = found.get(key, 0) + use.memory_used_mib
    return found


def all_used_mib(found: Overview, readings: Mapping[str, CardReading]) -> int | None:
    """What programs use of all cards together. None: of some card nobody knows; a part of the sum
    would look like the whole. Cards that are lost tell nothing, and do nothing."""
    total = 0
    for node in found.nodes:
        for view in node.cards:
            reading = readings.get(view.card.uuid)
            used = reading.memory_used_mib if reading else None
            if used is None and view.card.health is not CardHealth.LOST:
                return None
            total += used or 0
    return total


def asked_words(t: Translate, asks: Iterable[GpuAsk]) -> str:
    """What all containers of a pod ask for."""
    return ", ".join(_asked(t, ask) for ask in asks)


def _asked(t: Translate, ask: GpuAsk) -> str:
    if ask.whole:
        return t("1 whole card") if ask.whole == 1 else t("{count} whole cards", count=ask.whole)
    words = t("{units} GiB of a card", units=ask.units)
    if ask.cards > 1:
        words = t("{units} GiB on each of {cards} cards", units=ask.units, cards=ask.cards)
    if not ask.percent:
        return words
    return t("{memory} and {percent} % of its compute", memory=words, percent=ask.percent)


def node_view(state: NodeState, version: int) -> NodeView:
    parts: dict[str, list[Part]] = {}
    for held in state.pods.values():
        for uuid, part in _parts(held, state.node.inventory or Inventory()):
            parts.setdefault(uuid, []).append(part)
    by_name = attrgetter("namespace", "pod")
    cards = tuple(
        CardView(each.card, tuple(sorted(parts.get(each.card.uuid, ()), key=by_name)))
        for each in state.cards
    )
    pool = state.node.labels.get(LABEL_POOL, "")
    return NodeView(
        state.node.name,
        pool,
        state.node.gpu_mode is not GpuMode.WHOLE,
        cards,
        version,
        max((card.offers for card in cards), default=0),
        tuple(dict.fromkeys(card.card.model for card in cards)),
        frozenset(part.namespace for card in cards for part in card.parts),
    )


def _parts(held: Held, inventory: Inventory) -> Iterable[tuple[str, Part]]:
    known = {share.uuid: gpus for gpus in held.allocation.containers for share in gpus.shares}
    unknown = ContainerGpus("", (), Isolation.NONE)
    for hold in held.cards:
        gpus = known.get(hold.uuid, unknown)
        yield (
            hold.uuid,
            Part(
                held.pod.namespace,
                held.pod.name,
                hold.units,
                hold.percent,
                gpus.isolation,
                hold.possible,
                inventory.wall_of(held.pod.uid, gpus),
            ),
        )


def totals_of(node: NodeView) -> Totals:
    """Of one node. A pod is on one node, so the totals of all nodes are their sum."""
    healthy = [card for card in node.cards if card.card.health is CardHealth.HEALTHY]
    return Totals(
        cards=len(node.cards),
        healthy=len(healthy),
        free=sum(not card.parts for card in healthy),
        units=sum(card.card.units for card in node.cards),
        used=sum(card.used for card in node.cards),
        pods=len({(part.namespace, part.pod) for card in node.cards for part in card.parts}),
        nodes=1,
    )
