"""The scheduler as a process of its own: one of several works, all answer for their health."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from aiohttp import web

from gpupool.kube.client import Kube
from gpupool.kube.lease import Candidacy, Leadership
from gpupool.scheduler.health import Address, health_routes, serving
from gpupool.scheduler.run import Scheduler, SchedulerSettings


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    scheduling: SchedulerSettings
    candidacy: Candidacy | None = None  # None: nobody else is there
    health: Address | None = None  # None: nobody asks


async def run_scheduler(
    kube: Kube, settings: ProgramSettings, ready: Callable[[int], None] = lambda _port: None
) -> None:
    """Until cancelled. `ready` gets the port for health and metrics."""
    current: list[Scheduler] = []

    def metrics() -> str:
        return current[0].metrics_text() if current else ""

    def is_ready() -> bool:
        # One that waits for its turn is ready for it.
        return not current or current[0].is_synced

    async with contextlib.AsyncExitStack() as stack:
        if settings.health is not None:
            app = web.Application()
            app.add_routes(health_routes(is_ready, metrics))
            ready(await stack.enter_async_context(serving(app, settings.health)))

        async def term(scheduling: SchedulerSettings) -> None:
            current[:] = [Scheduler(kube, scheduling)]
            try:
                await current[0].run()
            finally:
                current.clear()

        if settings.candidacy is None:
            await term(settings.scheduling)
            return
        leadership = Leadership(kube, settings.candidacy)
        scheduling = replace(settings.scheduling, may_act=leadership.is_sure)
        await leadership.run(lambda: term(scheduling))
