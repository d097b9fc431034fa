"""The extender as a process: HTTPS for kube-scheduler, and a scheduler beside it on the same state.

It leads pods that were refused to nodes that have room, and touches those, so that kube-scheduler
tries the pods again. It can do all that a scheduler does, so schedulers hand the Lease over to it,
and it serves their names. Several replicas can run: only the leader is ready, so a Service sends
kube-scheduler to the leader.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpupool.callers import ServerTls
from gpupool.contract.names import ANNOTATION_FREED, EXTENDER_PROFILE
from gpupool.health import Address, serving
from gpupool.scheduler.elected import Elected
from gpupool.scheduler.extender import Extender
from gpupool.scheduler.extender_server import NotLeading, application
from gpupool.scheduler.preemption import withdraw_nomination, write_nomination
from gpupool.scheduler.refused_pods import Lead
from gpupool.scheduler.reservations import LONGEST_S
from gpupool.scheduler.run import Scheduler
from gpupool.scheduler.unasked_pods import NOT_ASKED, NOT_ASKED_MESSAGE
from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.lease import Candidacy, seconds_since_boot
from kubeclient.resources import NODES

log = logging.getLogger(__name__)

_PAUSE_S = 0.1  # before pods that were refused are looked at again
_LOOK_S = 10.0  # between two checks of Bindings without an answer, and of pods without a question
# Without a client certificate. Metrics need a token.
_FOR_ANYBODY = frozenset({"/healthz", "/livez", "/readyz", "/metrics", "/version"})


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    policy: str  # by its name in POLICIES
    address: Address
    candidacy: Candidacy
    tls: ServerTls | None = None  # None: plain HTTP, for the same machine only
    most_nodes: int = 1  # that filter returns; 0: all that fit


class _Service:
    """The extender of the current term, for the HTTP server."""

    def __init__(self, kube: Kube, settings: ExtenderSettings) -> None:
        self._kube = kube
        self._most_nodes = settings.most_nodes
        self._elected = Elected(
            kube, settings.policy, settings.candidacy, self._work, keeps_room=False
        )
        self._extender: Extender | None = None

    async def run(self) -> None:
        await self._elected.run()

    def metrics_text(self) -> str:
        return self._elected.metrics_text()

    def answering(self) -> Extender:
        """Raises NotLeading."""
        scheduler = self._elected.current
        if self._extender is None or scheduler is None or not scheduler.is_synced:
            raise NotLeading(self._elected.holder)
        return self._extender

    async def _work(self, scheduler: Scheduler) -> None:
        """Extender and scheduler on the same state; the scheduler also does resizes."""
        changed = asyncio.Event()
        extender = Extender(
            self._kube,
            scheduler.state,
            seconds_since_boot,
            self._elected.is_sure,
            self._most_nodes,
            changed.set,
        )
        scheduler.on_change = changed.set
        self._extender = extender
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = (
                    tasks.create_task(self._lead_refused(extender, changed)),
                    tasks.create_task(_settle_lost(extender)),
                    tasks.create_task(_tell_unasked(extender, scheduler)),
                )
                try:
                    await scheduler.run(extender.pod_changed)
                finally:
                    for task in beside:
                        task.cancel()
        finally:
            self._extender = None

    async def _lead_refused(self, extender: Extender, changed: asyncio.Event) -> None:
        while True:
            # Reservations and what was tried expire without any change in the API, so nothing else
            # would wake this loop.
            expires = extender.reservations or extender.refused.has_tried
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_S if expires else None):
                    await changed.wait()
            # Changes come in bunches: one check for all of them. And kube-scheduler may take a
            # nomination back that comes before it has written down that the pod was refused.
            await asyncio.sleep(_PAUSE_S)
            changed.clear()
            if extender.reservations.expire(seconds_since_boot()):
                extender.state.wake()
            await self._lead(extender.refused.leads())

    async def _lead(self, leads: Sequence[Lead]) -> None:
        """Nodes are touched last: kube-scheduler then knows which of them to try first."""
        for lead in leads:
            if lead.is_nominated:
                await self._nominate(lead)
        for node in dict.fromkeys(lead.node for lead in leads if not lead.is_over):
            await self._touch(node)

    async def _nominate(self, lead: Lead) -> None:
        write = withdraw_nomination if lead.is_over else write_nomination
        try:
            await write(self._kube, lead.pod, lead.node)
        except (NotFound, Conflict):
            pass  # the pod has gone
        except KubeError as error:
            log.warning("pod not led", extra={"pod": lead.pod.name, "error": str(error)})

    async def _touch(self, node: str) -> None:
        mark = {"metadata": {"annotations": {ANNOTATION_FREED: str(time.time_ns())}}}
        try:
            await self._kube.patch(NODES.path(name=node), mark)
        except KubeError as error:
            log.warning("node not touched", extra={"node": node, "error": str(error)})


async def _settle_lost(extender: Extender) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        await extender.settle_lost()


async def _tell_unasked(extender: Extender, scheduler: Scheduler) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        pods = extender.unasked.take()
        for pod in pods:
            scheduler.warn(pod, NOT_ASKED, NOT_ASKED_MESSAGE)
        if pods:
            first = pods[0]["metadata"]["name"]
            extra = {"pods": len(pods), "first": first, "profile": EXTENDER_PROFILE}
            log.warning("kube-scheduler does not ask about pods", extra=extra)


async def run_extender(
    kube: Kube, settings: ExtenderSettings, ready: Callable[[int], None] = lambda _port: None
) -> None:
    """Runs until cancelled. `ready` is called with the port."""
    service = _Service(kube, settings)
    async with contextlib.AsyncExitStack() as stack:
        app = application(service.answering, service.metrics_text)
        if settings.tls is not None:  # on a network; kube-scheduler shows no token
            from gpupool.scrapers import Reviewer, guard  # certificates cost some MiB of memory

            app.middlewares.append(guard(Reviewer(kube), lambda path: path != "/metrics"))
            if settings.tls.knows_callers:
                app.middlewares.append(settings.tls.guard(_FOR_ANYBODY.__contains__))
            else:
                log.warning("answers whoever reaches it: no --client-ca")
        context = None if settings.tls is None else settings.tls.context
        address = await stack.enter_async_context(serving(app, settings.address, context))
        ready(address.port)
        await service.run()
