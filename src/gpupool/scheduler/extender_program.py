"""The extender as a process: HTTPS for kube-scheduler, and what nobody has to ask for.

That is: nodes are touched on which something was freed, so that kube-scheduler looks again; and
running pods get another share, as they wish.

Several can run: the one that leads is ready, so a Service sends kube-scheduler only there. The
Lease is the scheduler's: beside a `gpupool scheduler` that leads, extenders refuse, and say whom to
ask.
"""

import asyncio
import contextlib
import datetime
import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gpupool.contract.names import ANNOTATION_FREED, SCHEDULER_NAME
from gpupool.kube.client import Kube
from gpupool.kube.errors import KubeError
from gpupool.kube.events import Recorder
from gpupool.kube.lease import Candidacy, Leadership, Term, seconds_since_boot
from gpupool.kube.resources import NODES
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.extender import Extender
from gpupool.scheduler.extender_server import NotLeading, application
from gpupool.scheduler.follow import follow
from gpupool.scheduler.health import Address, serving
from gpupool.scheduler.report import Reports
from gpupool.scheduler.resizer import Resizer
from gpupool.scheduler.takeover import void_earlier_bindings

log = logging.getLogger(__name__)

_PAUSE_S = 0.1  # between two looks at who waits


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    policy: str  # by its name in POLICIES
    address: Address
    candidacy: Candidacy
    tls: ssl.SSLContext | None = None  # None: plain HTTP, for the same machine only


class _Service:
    """What the HTTP server asks: the extender of the current term, if there is one."""

    def __init__(self, kube: Kube, settings: ExtenderSettings) -> None:
        self._kube = kube
        self._policy = settings.policy
        self._leadership = Leadership(kube, settings.candidacy)
        self._is_settled = True
        self.current: Extender | None = None

    async def run(self) -> None:
        await self._leadership.run(self._term, lambda: self._is_settled)

    def answering(self) -> Extender:
        """Raises NotLeading."""
        if self.current is None:
            raise NotLeading(self._leadership.holder)
        return self.current

    async def _term(self, term: Term) -> None:
        """From reading everything to the end of it."""
        self._is_settled = not term.inherits
        await void_earlier_bindings(self._kube, term)
        changed = asyncio.Event()
        state = ClusterState((), self._policy, changed.set, seconds_since_boot)
        clock, is_sure = seconds_since_boot, self._leadership.is_sure
        extender = Extender(self._kube, state, clock, is_sure)
        now = partial(datetime.datetime.now, datetime.UTC)
        events = {SCHEDULER_NAME: Recorder(self._kube, SCHEDULER_NAME, now)}
        reports = Reports(self._kube, events, state.pending, clock=clock, now=now)
        resizer = Resizer(self._kube, state, reports, clock, is_sure)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(reports.run(), name="extender-reports")
                await follow(self._kube, state, tasks, extender.pod_changed)
                resizer.begin()
                self.current = extender
                while True:
                    await _until(changed, state.resizing.due_s() - clock())
                    for write in resizer.due_writes(clock()):
                        await write()
                    await self._touch(extender)
                    await asyncio.sleep(_PAUSE_S)
        finally:
            self._is_settled = state.ledger.is_settled()
            self.current = None

    async def _touch(self, extender: Extender) -> None:
        for node in extender.freed():
            mark = {"metadata": {"annotations": {ANNOTATION_FREED: str(time.time_ns())}}}
            try:
                await self._kube.patch(NODES.path(name=node), mark)
            except KubeError as error:
                log.warning("node not touched", extra={"node": node, "error": str(error)})


async def _until(changed: asyncio.Event, wait_s: float) -> None:
    """Something has changed, or the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wait_s if wait_s != float("inf") else None):
            await changed.wait()
    changed.clear()


async def run_extender(
    kube: Kube, settings: ExtenderSettings, ready: Callable[[int], None] = lambda _port: None
) -> None:
    """Until cancelled. `ready` gets the port."""
    service = _Service(kube, settings)
    async with contextlib.AsyncExitStack() as stack:
        app = application(service.answering)
        ready(await stack.enter_async_context(serving(app, settings.address, settings.tls)))
        await service.run()
