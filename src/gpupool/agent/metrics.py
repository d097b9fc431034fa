"""The agent's metrics, and their HTTP server on the loopback interface.

`Metrics` keeps the agent's values as they are and makes samples of them only when somebody asks:
in a local cluster hundreds of agents share one process, and most of them are never asked.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gpupool.core.gpu import Card, CardHealth, Inventory
from gpupool.hardware.driver import Xid

if TYPE_CHECKING:
    from gpupool.health import Address

Sample = tuple[tuple[str, ...], float]  # label values, value


@dataclass(slots=True)
class Metrics(Collector):
    node: str
    has_driver: bool | None = None  # None before the first look
    inventory: Inventory = field(default_factory=Inventory)
    xids: Counter[Xid] = field(default_factory=Counter)
    # By namespace and name of the pod, and card: MiB in use.
    overuses: dict[tuple[str, str, str], int] = field(default_factory=dict)
    overuses_begun: int = 0

    def text(self) -> str:
        from gpupool.health import metrics_text

        return metrics_text(self)

    def collect(self) -> Iterator[Metric]:
        yield _gauge(
            "gpupool_driver_up",
            "1 if the NVIDIA driver answers, else 0.",
            (),
            [((), float(bool(self.has_driver)))],
        )
        yield from _card_metrics(self.inventory.cards)
        yield _counter(
            "gpupool_xids_total",
            "Errors (Xids) that the driver reported.",
            ("uuid", "xid"),
            [((xid.uuid, str(xid.number)), count) for xid, count in sorted(self.xids.items())],
        )
        yield _gauge(
            "gpupool_overuse_memory_mib",
            "Memory in use by a pod that uses more than its share of a card.",
            ("namespace", "pod", "uuid"),
            self.overuses.items(),
        )
        yield _counter(
            "gpupool_overuses_total",
            "How often a pod was found to use more than its share.",
            (),
            [((), self.overuses_begun)],
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


async def serve_metrics(text: Callable[[], str], port: int) -> None:
    """Until cancelled."""
    async with serving_metrics(text, port):
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def serving_metrics(text: Callable[[], str], port: int) -> "AsyncIterator[Address]":
    """Serve GET /metrics on the loopback interface, and yield the address."""
    # Imported here: aiohttp's server costs memory and time, and few agents serve metrics.
    from aiohttp import web

    from gpupool.health import LOOPBACK, Address, metrics_route, serving

    app = web.Application()
    app.add_routes([metrics_route(text)])
    async with serving(app, Address(LOOPBACK, port)) as address:
        yield address
