"""Which nodes and cards the visitor of the map means. The address says it:
`?free=6GiB&pool=cgpu&model=...&health=sick&q=text`. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpupool.console.gpus import CardView, NodeView
from gpupool.console.words import word
from gpupool.core.gpu import CardHealth

_AMOUNT = re.compile(r"(\d{1,6})\s*(GiB|Gi|G)?", re.IGNORECASE)
SICK = "sick"
HEALTH_WORDS = {
    CardHealth.HEALTHY: word("all cards take pods"),
    SICK: word("some card is sick"),
    CardHealth.CORDONED: word("some card is cordoned"),
}


@dataclass(frozen=True, slots=True)
class Filters:
    text: tuple[str, ...]  # all of these
    free: int | None  # GiB on one card; None: what was typed is no amount
    pool: str
    model: str
    health: str
    node: str  # its whole name

    def mean(self, node: NodeView, view: CardView) -> bool:
        """A node without the text or of another pool has no card that is meant."""
        return (
            (not self.pool or node.pool == self.pool)
            and (not self.node or node.name == self.node)
            and self.mean_card(view)
            and (not self.text or _has(node_words(node), self.text))
        )

    def mean_card(self, view: CardView) -> bool:
        return (
            (not self.free or view.offers >= self.free)
            and (not self.model or view.card.model == self.model)
            and (self.health not in HEALTH_WORDS or self.health == card_health(view))
        )


def filters_of(query: Mapping[str, str]) -> Filters:
    return Filters(
        tuple(query.get("q", "").casefold().split()),
        free_gib(query.get("free", "")),
        query.get("pool", ""),
        query.get("model", ""),
        query.get("health", ""),
        query.get("node", ""),
    )


def free_gib(text: str) -> int | None:
    """ "6GiB" or "6"; nothing: 0, which all have. None: it is no amount."""
    if not text.strip():
        return 0
    found = _AMOUNT.fullmatch(text.strip())
    return int(found[1]) if found else None


def card_health(view: CardView) -> str:
    if view.card.health is CardHealth.CORDONED:
        return CardHealth.CORDONED
    return CardHealth.HEALTHY if view.card.takes_pods and not view.is_closed else SICK


def worst_health(node: NodeView) -> str:
    found = {card_health(card) for card in node.cards}
    return next((each for each in (SICK, CardHealth.CORDONED) if each in found), CardHealth.HEALTHY)


def node_words(node: NodeView) -> str:
    """What a search looks at."""
    pods = (f"{part.namespace}/{part.pod}" for card in node.cards for part in card.parts)
    uuids = (card.card.uuid for card in node.cards)
    return " ".join((node.name, node.pool, *node.models, *uuids, *pods))


def _has(words: str, wanted: tuple[str, ...]) -> bool:
    folded = words.casefold()
    return all(each in folded for each in wanted)
