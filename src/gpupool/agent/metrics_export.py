"""The agent's metrics as Prometheus samples, made from its values when somebody asks.

In a module of its own, which is imported with the first request: most agents are never asked, and
prometheus_client would cost each of them 3 MiB.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gpupool.agent.metrics import Metrics
from gpupool.core.gpu import Card, CardHealth

Sample = tuple[tuple[str, ...], float]  # label values, value


class AgentCollector(Collector):
    def __init__(self, values: Metrics) -> None:
        self._values = values

    def collect(self) -> Iterator[Metric]:
        values = self._values
        yield _gauge(
            "gpupool_driver_up",
            "1 if the NVIDIA driver answers, else 0.",
            (),
            [((), float(bool(values.has_driver)))],
        )
        yield from _card_metrics(values.inventory.cards)
        yield _counter(
            "gpupool_xids_total",
            "Errors (Xids) that the driver reported.",
            ("uuid", "xid"),
            [((xid.uuid, str(xid.number)), count) for xid, count in sorted(values.xids.items())],
        )
        yield _gauge(
            "gpupool_overuse_memory_mib",
            "Memory in use by a pod that uses more than its share of a card.",
            ("namespace", "pod", "uuid"),
            values.overuses.items(),
        )
        yield _counter(
            "gpupool_overuses_total",
            "How often a pod was found to use more than its share.",
            (),
            [((), values.overuses_begun)],
        )
        yield _gauge(
            "gpupool_pod_wall",
            "1 for what holds a pod to its share: driver, limiter or none.",
            ("namespace", "pod", "wall"),
            values.walls.items(),
        )
        yield _gauge(
            "gpupool_context_memory_mib",
            "Memory that the limiter counts for a process's first context. Absent: not measured.",
            (),
            [((), values.context_mib)] if values.context_mib is not None else [],
        )


def _card_metrics(cards: tuple[Card, ...]) -> Iterator[Metric]:
    yield _gauge(
        "gpupool_card_health",
        "1 for the state that a card is in, 0 for every other state.",
        ("uuid", "state"),
        [((card.uuid, state), card.health is state) for card in cards for state in CardHealth],
    )
    yield _gauge(
        "gpupool_card_memory_mib",
        "Memory of a card.",
        ("uuid", "index", "model"),
        [((card.uuid, str(card.index), card.model), card.memory_mib) for card in cards],
    )
    yield _gauge(
        "gpupool_card_outside_memory_mib",
        "Memory of a card in use by processes outside of pods.",
        ("uuid",),
        [((card.uuid,), card.outside_mib) for card in cards],
    )


def _gauge(name: str, help_text: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> Metric:
    metric = GaugeMetricFamily(name, help_text, labels=labels)
    for values, value in samples:
        metric.add_metric(values, value)
    return metric


def _counter(
    name: str, help_text: str, labels: tuple[str, ...], samples: Iterable[Sample]
) -> Metric:
    metric = CounterMetricFamily(name, help_text, labels=labels)
    for values, value in samples:
        metric.add_metric(values, value)
    return metric
