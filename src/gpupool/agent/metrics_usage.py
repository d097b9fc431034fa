"""Our own metrics of what containers were given, and of what they do with it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from gpupool.agent.metrics_dcgm import Seen
from gpupool.core.readings import ContainerUse

_MIB = 1 << 20
_LABELS = ("node", "gpu", "uuid", "namespace", "pod", "container")
WHOLE = "whole"  # as the label "isolation" of a container that has its card alone


class _Field(NamedTuple):
    name: str
    help_text: str
    value: Callable[[ContainerUse], float | None]


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib * _MIB


_FIELDS = (
    _Field(
        "memory_request_bytes",
        "The container's share of the card; a whole card: all of it.",
        lambda use: _bytes(use.memory_request_mib),
    ),
    _Field(
        "memory_limit_bytes",
        "What the container is held to. Absent: it is held to nothing.",
        lambda use: _bytes(use.memory_limit_mib),
    ),
    _Field(
        "memory_used_bytes",
        "Memory that processes of the container hold.",
        lambda use: _bytes(use.memory_used_mib),
    ),
    _Field(
        "memory_peak_bytes",
        "The most that it held in a sample since watched_since_seconds.",
        lambda use: _bytes(use.memory_peak_mib),
    ),
    _Field(
        "sm_utilization_ratio",
        "In which part of the time since the last sample kernels of the container ran.",
        lambda use: None if use.sm_percent is None else use.sm_percent / 100,
    ),
    _Field(
        "idle_seconds",
        "Time since a sample last showed a kernel of the container.",
        lambda use: use.idle_s,
    ),
    _Field(
        "power_watts",
        "The part of the card's power that goes to kernels of the container.",
        lambda use: None if use.power_mw is None else use.power_mw / 1000,
    ),
    _Field(
        "watched_since_seconds",
        "Time of the agent's first sample of the container, in seconds since 1970.",
        lambda use: use.watched_since_s,
    ),
)


def usage_metrics(node: str, seen: list[Seen]) -> Iterator[Metric]:
    uses = [(_labels(node, each, each.use), each.use) for each in seen if each.use is not None]
    for field in _FIELDS:
        metric = GaugeMetricFamily(
            f"gpupool_container_{field.name}", field.help_text, labels=_LABELS
        )
        for labels, use in uses:
            value = field.value(use)
            if value is not None:
                metric.add_metric(labels, value)
        yield metric
    walls = GaugeMetricFamily(
        "gpupool_container_isolation",
        "1 for what holds the container to its share: driver, limiter, none; whole: it has the card"
        " alone.",
        labels=(*_LABELS, "isolation"),
    )
    for labels, use in uses:
        if use.memory_request_mib is not None:
            walls.add_metric((*labels, str(use.isolation or WHOLE)), 1)
    yield walls
    yield from _of_cards(node, seen)


def _of_cards(node: str, seen: list[Seen]) -> Iterator[Metric]:
    labels = ("node", "gpu", "uuid")
    used = GaugeMetricFamily(
        "gpupool_card_memory_used_bytes", "Memory of a card in use, by whomever.", labels=labels
    )
    reserved = GaugeMetricFamily(
        "gpupool_card_memory_reserved_bytes",
        "Memory of a card that was given to containers.",
        labels=labels,
    )
    given: dict[tuple[str, ...], int] = {}
    for each in seen:
        card = (node, str(each.card.index), each.card.uuid)
        if card not in given and each.reading.memory_used_mib is not None:
            used.add_metric(card, each.reading.memory_used_mib * _MIB)
        mib = each.use.memory_request_mib if each.use else None
        given[card] = given.get(card, 0) + (mib or 0)
    for labels_of_card, total in given.items():
        reserved.add_metric(labels_of_card, total * _MIB)
    yield used
    yield reserved


def _labels(node: str, seen: Seen, use: ContainerUse) -> tuple[str, ...]:
    card = seen.card
    return (node, str(card.index), card.uuid, use.namespace, use.pod, use.container)
