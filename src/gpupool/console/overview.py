"""overview: nodes with cards, and which pods hold which parts of them, as values. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from gpupool.contract.names import LABEL_POOL
from gpupool.core.gpu import Card, CardHealth, GpuAsk, GpuMode, Inventory, Isolation, Wall
from gpupool.core.pods import PodRequest
from gpupool.engine.cluster import ClusterModel
from gpupool.engine.node_state import Held, NodeState


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that has no node yet."""

    request: PodRequest
    since: str  # its creationTimestamp


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as it was read at one moment."""

    cluster: ClusterModel
    waiting: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What one pod holds of one card."""

    namespace: str
    pod: str
    units: int
    percent: int
    isolation: Isolation
    possible: bool = False  # nobody knows whether the pod holds it: the card is closed
    wall: Wall | None = None  # what holds it to its share; None: it has the card, or unknown

    @property
    def words(self) -> str:
        """How it is held, for people."""
        if self.isolation is Isolation.LIMIT and self.wall in (Wall.DRIVER, Wall.LIMITER):
            return f"{self.isolation.words} by the {self.wall}"
        return self.isolation.words


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


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    pool: str
    use: str
    cards: tuple[CardView, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    cards: int
    healthy: int
    free: int  # healthy cards of which no pod holds a part
    units: int
    used: int
    pods: int


@dataclass(frozen=True, slots=True)
class Overview:
    nodes: tuple[NodeView, ...]  # by name; only those with cards
    totals: Totals


def overview(cluster: ClusterModel) -> Overview:
    states = (cluster.at(int(index)) for index in cluster.all_nodes())
    nodes = sorted((_node(state) for state in states if state.cards), key=lambda each: each.name)
    return Overview(tuple(nodes), _totals(nodes))


def matching(nodes: Iterable[NodeView], text: str) -> list[NodeView]:
    """The nodes whose name, pool, models or pods contain the text."""
    wanted = text.casefold()
    return [node for node in nodes if any(wanted in word.casefold() for word in _words(node))]


def asked(request: PodRequest) -> str:
    """What all containers of the pod ask for, in words."""
    return ", ".join(_asked(ask) for ask in request.gpus)


def _asked(ask: GpuAsk) -> str:
    if ask.whole:
        return "1 whole card" if ask.whole == 1 else f"{ask.whole} whole cards"
    words = f"{ask.units} GiB of a card"
    if ask.cards > 1:
        words = f"{ask.units} GiB on each of {ask.cards} cards"
    return f"{words} and {ask.percent} % of its compute" if ask.percent else words


def _words(node: NodeView) -> Iterable[str]:
    yield node.name
    yield node.pool
    for card in node.cards:
        yield card.card.model
        for part in card.parts:
            yield f"{part.namespace}/{part.pod}"


def _node(state: NodeState) -> NodeView:
    parts: dict[str, list[Part]] = {}
    for held in state.pods.values():
        for uuid, part in _parts(held, state.node.inventory or Inventory()):
            parts.setdefault(uuid, []).append(part)
    by_name = attrgetter("namespace", "pod")
    cards = tuple(
        CardView(each.card, tuple(sorted(parts.get(each.card.uuid, ()), key=by_name)))
        for each in state.cards
    )
    return NodeView(state.node.name, state.node.labels.get(LABEL_POOL, ""), _use(state), cards)


def _use(state: NodeState) -> str:
    match state.node.gpu_mode:
        case GpuMode.WHOLE:
            return "whole cards"
        case GpuMode.SHARED:
            return "shared, isolated" if state.node.isolates else "shared, not isolated"
        case _:
            return "whole or shared"


def _parts(held: Held, inventory: Inventory) -> Iterable[tuple[str, Part]]:
    isolation = {
        share.uuid: gpus.isolation for gpus in held.allocation.containers for share in gpus.shares
    }
    for hold in held.cards:
        kind = isolation.get(hold.uuid, Isolation.NONE)
        yield (
            hold.uuid,
            Part(
                held.pod.namespace,
                held.pod.name,
                hold.units,
                hold.percent,
                kind,
                hold.possible,
                inventory.wall_of(held.pod.uid, kind),
            ),
        )


def _totals(nodes: list[NodeView]) -> Totals:
    cards = [card for node in nodes for card in node.cards]
    holders = {(part.namespace, part.pod) for card in cards for part in card.parts}
    healthy = [card for card in cards if card.card.health is CardHealth.HEALTHY]
    return Totals(
        cards=len(cards),
        healthy=len(healthy),
        free=sum(not card.parts for card in healthy),
        units=sum(card.card.units for card in cards),
        used=sum(card.used for card in cards),
        pods=len(holders),
    )
