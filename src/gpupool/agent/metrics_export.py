"""The agent's metrics as Prometheus samples, made from its values when somebody asks.

In a module of its own, which is imported with the first request: most agents are never asked, and
prometheus_client would cost each of them 3 MiB.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gpupool.agent.metrics import Metrics
from gpupool.agent.metrics_dcgm import Seen, dcgm_metrics
from gpupool.agent.metrics_usage import usage_metrics
from gpupool.core.gpu import Card, CardHealth
from gpupool.core.readings import NodeReadings

MOST_SERIES = 1000  # of one metric; a kubelet runs 110 pods unless told otherwise

Sample = tuple[tuple[str, ...], float]  # label values, value


class AgentCollector(Collector):
    def __init__(self, values: Metrics, readings: NodeReadings | None = None) -> None:
        self._values = values
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        values = self._values
        yield _gauge(
            "gpupool_driver_up",
            "1 if the NVIDIA driver answers, else 0.",
            ("node",),
            [((values.node,), float(bool(values.has_driver)))],
        )
        yield from _card_metrics(values.node, values.inventory.cards)
        yield from self._usage()
        yield _counter(
            "gpupool_xids_total",
            "Errors (Xids) that the driver reported.",
            ("node", "uuid", "xid"),
            [
                ((values.node, xid.uuid, str(xid.number)), count)
                for xid, count in sorted(values.xids.items())
            ],
        )
        yield _gauge(
            "gpupool_overuse_memory_mib",
            "Memory in use by a pod that uses more than its share of a card.",
            ("node", "namespace", "pod", "uuid"),
            [((values.node, *who), mib) for who, mib in values.overuses.items()],
        )
        yield _counter(
            "gpupool_overuses_total",
            "How often a pod was found to use more than its share.",
            ("node",),
            [((values.node,), values.overuses_begun)],
        )
        yield _gauge(
            "gpupool_container_without_card",
            "1 for a container that runs without the card that it was promised.",
            ("node", "namespace", "pod", "container"),
            [((values.node, *who), 1) for who in sorted(values.without_card)],
        )
        yield _counter(
            "gpupool_starts_refused_total",
            "How often a container was not started, because its card did not get into it.",
            ("node",),
            [((values.node,), values.starts_refused)],
        )
        yield _gauge(
            "gpupool_pod_isolation",
            "1 for what holds a pod to its share: driver, limiter or none.",
            ("node", "namespace", "pod", "isolation"),
            [((values.node, *who), one) for who, one in values.walls.items()],
        )
        yield _gauge(
            "gpupool_context_memory_mib",
            "Memory that the limiter counts for a process's first context. Absent: not measured.",
            ("node",),
            [((values.node,), values.context_mib)] if values.context_mib is not None else [],
        )

    def _usage(self) -> Iterator[Metric]:
        values = self._values
        seen = _seen(values, self._readings)
        # A node may have more pods than anybody expects. Prometheus must not suffer from it.
        kept = seen[:MOST_SERIES]
        yield _gauge(
            "gpupool_containers_left_out",
            f"Containers without metrics of their own, because there are over {MOST_SERIES}.",
            ("node",),
            [((values.node,), len(seen) - len(kept))],
        )
        yield from dcgm_metrics(values.node, values.inventory.driver, kept)
        yield from usage_metrics(values.node, kept)


def _seen(values: Metrics, readings: NodeReadings | None) -> list[Seen]:
    """One for each container of each card, and for each card without one."""
    known = {card.uuid: card for card in values.inventory.cards}
    found = []
    for reading in readings.cards if readings else ():
        card, xid = known.get(reading.uuid), values.last_xid.get(reading.uuid, 0)
        if card is None:
            continue  # it was found a moment ago
        uses = reading.containers or ()
        # A container without a known name cannot be told from others of its pod.
        is_shared = len(uses) > 1 or any(use.isolation for use in uses)
        found += [Seen(card, reading, use, is_shared, xid) for use in uses or (None,)]
    return found


def _card_metrics(node: str, cards: tuple[Card, ...]) -> Iterator[Metric]:
    yield _gauge(
        "gpupool_card_health",
        "1 for the state that a card is in, 0 for every other state.",
        ("node", "gpu", "uuid", "state"),
        [
            ((node, str(card.index), card.uuid, state), card.health is state)
            for card in cards
            for state in CardHealth
        ],
    )
    yield _gauge(
        "gpupool_card_memory_mib",
        "Memory of a card.",
        ("node", "uuid", "index", "model"),
        [((node, card.uuid, str(card.index), card.model), card.memory_mib) for card in cards],
    )
    yield _gauge(
        "gpupool_card_outside_memory_mib",
        "Memory of a card in use by processes outside of pods.",
        ("node", "uuid"),
        [((node, card.uuid), card.outside_mib) for card in cards],
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
