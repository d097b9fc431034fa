"""What the agent counts, and the HTTP server for it on the loopback interface.

`Metrics` are plain values; `metrics_export.py` makes Prometheus samples of them when asked.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpupool.core.gpu import Inventory
from gpupool.hardware.driver import Xid

if TYPE_CHECKING:
    from gpupool.health import Address


@dataclass(slots=True)
class Metrics:
    node: str
    has_driver: bool | None = None  # None before the first look
    inventory: Inventory = field(default_factory=Inventory)
    xids: Counter[Xid] = field(default_factory=Counter)
    # By namespace and name of the pod, and card: MiB in use.
    overuses: dict[tuple[str, str, str], int] = field(default_factory=dict)
    overuses_begun: int = 0
    context_mib: int | None = None  # memory of a context; None: not measured

    def text(self) -> str:
        from gpupool.agent.metrics_export import AgentCollector
        from gpupool.health import metrics_text

        return metrics_text(AgentCollector(self))


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
