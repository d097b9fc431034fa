"""What the agent reports as events of its node. Pure."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from gpupool.agent.cards import changed_cards
from gpupool.agent.ways import no_way_words
from gpupool.contract.names import RESOURCE_GPU
from gpupool.core.gpu import Card, CardHealth, Inventory

_REASONS = {
    CardHealth.SUSPECT: "GpuSuspect",
    CardHealth.UNHEALTHY: "GpuUnhealthy",
    CardHealth.LOST: "GpuLost",
    CardHealth.CORDONED: "GpuCordoned",
}


class News(NamedTuple):
    is_bad: bool
    reason: str
    message: str


def news_of(before: Inventory, after: Inventory) -> Iterator[News]:
    if after.cards and not before.cards:
        yield News(False, "GpusFound", f"found {_models(after)}; driver {after.driver}")
    for old, card in changed_cards(before, after):
        shown = f"card {card.index} ({card.model}, {card.uuid})"
        if card.health is not CardHealth.HEALTHY:
            is_bad = card.health is not CardHealth.CORDONED
            yield News(is_bad, _REASONS[card.health], f"{shown} is {card.health}: {card.reason}")
        elif old is not None:
            yield News(False, "GpuHealthy", f"{shown} is healthy again; it was {_was(old)}")


def way_news(before: Inventory, after: Inventory) -> Iterator[News]:
    """When the way has changed, or begins or ceases to work."""
    old, new = before.ways, after.ways
    if new is None or old == new:
        return
    if not new.is_open:
        yield News(True, "NoInjection", f"{no_way_words(new)}. The node offers no GPUs until then")
    elif old is None or (old.chosen, old.is_open) != (new.chosen, True):
        assert new.chosen is not None
        yield News(False, "CardsGetIn", f"cards get into containers by {new.chosen.words}")


def no_driver(why: str) -> News:
    return News(True, "NoGpuDriver", f"{why}. The node offers no GPUs until it answers.")


def not_read(card: int, why: str) -> News:
    return News(True, "GpuNotRead", f"the driver cannot read card {card}, it is not offered: {why}")


def driver_holds(version: str) -> News:
    words = f"driver {version} holds isolated shares itself, by memory limits of their cgroups"
    return News(False, "DriverHoldsShares", words)


OTHER_PLUGIN = News(
    True,
    "OtherGpuPlugin",
    f"NVIDIA's device plugin offers {RESOURCE_GPU} on this node, and would count the same cards: "
    "we offer none of it until that has gone. Keep it off this node, or start us with "
    "--no-whole-cards (agent.wholeCards=false)",
)


def label_conflict(labels: tuple[str, ...]) -> News:
    shown = ", ".join(labels)
    return News(True, "GpuLabelsNotOurs", f"somebody else has set {shown}: left as it is")


def _models(inventory: Inventory) -> str:
    counts = Counter(card.model for card in inventory.cards)
    return ", ".join(f"{count} x {model}" for model, count in counts.items())


def _was(card: Card) -> str:
    return f"{card.health}: {card.reason}" if card.reason else str(card.health)
