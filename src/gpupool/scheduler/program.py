"""The scheduler as a process: one replica leads, all replicas serve health and metrics."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from gpupool.health import Address, health_routes, metrics_route, serving
from gpupool.scheduler.elected import Elected
from kubeclient.client import Kube
from kubeclient.lease import Candidacy


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    policy: str  # by its name in POLICIES
    candidacy: Candidacy
    health: Address | None = None  # None: not served


async def run_scheduler(
    kube: Kube, settings: ProgramSettings, ready: Callable[[int], None] = lambda _port: None
) -> None:
    """Until cancelled. `ready` is called with the port for health and metrics."""
    elected = Elected(kube, settings.policy, settings.candidacy)

    def metrics() -> str:
        return elected.current.metrics_text() if elected.current else ""

    def is_ready() -> bool:
        # A standby is ready too: it can take over.
        return elected.current is None or elected.current.is_synced

    async with contextlib.AsyncExitStack() as stack:
        if settings.health is not None:
            app = web.Application()
            app.add_routes([*health_routes(is_ready), metrics_route(metrics)])
            address = await stack.enter_async_context(serving(app, settings.health))
            ready(address.port)
        await elected.run()
