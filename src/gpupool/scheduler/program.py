"""The scheduler as a process: one replica leads, all replicas serve health and metrics."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from gpupool.health import LOOPBACKS, Address, health_routes, metrics_route, serving
from gpupool.scheduler.elected import Elected
from kubeclient.client import Kube
from kubeclient.lease import Candidacy

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    policy: str  # by its name in POLICIES
    candidacy: Candidacy
    health: Address | None = None  # None: not served
    # Where scrapers of the cluster ask for metrics, over HTTPS. None: nowhere.
    scrapers: Address | None = None
    keeps_room: bool = True  # for pods that have waited for long


async def run_scheduler(
    kube: Kube, settings: ProgramSettings, ready: Callable[[int], None] = lambda _port: None
) -> None:
    """Until cancelled. `ready` is called with the port for health and metrics."""
    elected = Elected(kube, settings.policy, settings.candidacy, keeps_room=settings.keeps_room)

    def is_ready() -> bool:
        # A standby is ready too: it can take over.
        return elected.current is None or elected.current.is_synced

    async with contextlib.AsyncExitStack() as stack:
        if settings.health is not None:
            app = web.Application()
            app.add_routes(health_routes(is_ready))
            # Whoever is on this machine may see them. On a network, `scrapers` asks who it is.
            if settings.health.host in LOOPBACKS:
                app.add_routes([metrics_route(elected.metrics_text)])
            address = await stack.enter_async_context(serving(app, settings.health))
            ready(address.port)
        if settings.scrapers is not None:
            # Imported here: certificates cost some MiB of memory.
            from gpupool.scrapers import Reviewer, guard, own_tls

            app = web.Application(middlewares=[guard(Reviewer(kube))])
            app.add_routes([*health_routes(is_ready), metrics_route(elected.metrics_text)])
            tls = own_tls("gpupool-scheduler")
            address = await stack.enter_async_context(serving(app, settings.scrapers, tls))
            log.info("metrics are served", extra={"port": address.port})
        await elected.run()
