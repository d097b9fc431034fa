"""How full the cluster is, as Prometheus samples."""

from collections.abc import Callable, Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gpupool.engine.room import ClusterRoom, ModelRoom

_MIB = 1 << 20
_MOST_MODELS = 64  # of the cards in a cluster; there are a handful
_FAMILIES: tuple[tuple[str, str, Callable[[ModelRoom], float]], ...] = (
    ("cards", "Cards that take pods.", lambda room: room.cards),
    ("cards_free", "Cards of which nothing is given out.", lambda room: room.free_cards),
    ("card_memory_bytes", "Memory of cards that take pods.", lambda room: room.memory_mib * _MIB),
    (
        "card_memory_allocated_bytes",
        "Memory that was given to pods.",
        lambda room: room.allocated_mib * _MIB,
    ),
    (
        "card_memory_stranded_bytes",
        "Free memory of cards that are partly given out: no pod with a whole card can have it.",
        lambda room: room.stranded_mib * _MIB,
    ),
    (
        "largest_share_bytes",
        "The largest share that a card can still give.",
        lambda room: room.largest_share_mib * _MIB,
    ),
)


class RoomCollector(Collector):
    def __init__(self, room: ClusterRoom, policy: str) -> None:
        self._room = room
        self._policy = policy

    def collect(self) -> Iterator[Metric]:
        models = sorted(self._room.models.items())[:_MOST_MODELS]
        for name, words, value in _FAMILIES:
            metric = GaugeMetricFamily(
                f"gpupool_scheduler_{name}", words, labels=("model", "policy")
            )
            for model, room in models:
                metric.add_metric((model, self._policy), value(room))
            yield metric
        gangs = GaugeMetricFamily(
            "gpupool_scheduler_largest_gang",
            "How many pods with so many whole cards each still fit at once, by their cards.",
            labels=("cards_per_pod", "policy"),
        )
        for size, pods in self._room.gangs.items():
            gangs.add_metric((str(size), self._policy), pods)
        yield gangs
