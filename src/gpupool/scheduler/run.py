"""Scheduler: pods without a node come in, decisions are made, Bindings go out beside them.

The main flow is `_try`. A decision holds its place at once, so the next one never waits for the
API server, and no card is given twice. All state comes from the API: whoever starts, or takes
over, reads everything first.
"""

import asyncio
import datetime
from collections.abc import Callable
from dataclasses import dataclass

from gpupool.contract.names import SCHEDULER_NAME
from gpupool.engine.decide import Placement, Unschedulable, decide, decide_on
from gpupool.engine.policies.policy import Policy
from gpupool.kube.client import Kube
from gpupool.kube.events import Recorder
from gpupool.kube.lease import seconds_since_boot
from gpupool.kube.mirror import Mirror
from gpupool.kube.resources import NAMESPACES, NODES, PODS
from gpupool.scheduler.bind import Binder
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.metrics import Metrics, Result
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.report import Reports

_DRAIN_S = 5.0
_SLICE_S = 0.002  # of decisions at a stretch; then the event loop has its turn


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """`names`: the values of spec.schedulerName that are served."""

    policy: Policy
    names: frozenset[str] = frozenset({SCHEDULER_NAME})
    clock: Callable[[], float] = seconds_since_boot
    # Asked before every write: false from the moment on in which another may have taken over.
    may_act: Callable[[], bool] = lambda: True


class Scheduler:
    def __init__(self, kube: Kube, settings: SchedulerSettings) -> None:
        self._kube = kube
        self._policy = settings.policy
        self._clock = settings.clock
        self._wake = asyncio.Event()
        self.metrics = Metrics()
        self.state = ClusterState(settings.names, self._wake.set)
        events = {name: Recorder(kube, name, _now) for name in settings.names}
        self._reports = Reports(kube, events, clock=settings.clock, now=_now)
        self._binder = Binder(
            kube, self.state, self._reports, self.metrics, settings.clock, settings.may_act
        )

    async def run(self) -> None:
        """Until cancelled; then what was sent is waited for."""
        mirrors = {resource: Mirror(self._kube, resource) for resource in (NODES, NAMESPACES, PODS)}
        mirrors[NODES].on_change(self.state.node_changed)
        mirrors[NAMESPACES].on_change(self.state.namespace_changed)
        mirrors[PODS].on_change(self.state.pod_changed)
        async with asyncio.TaskGroup() as tasks:
            for resource, mirror in mirrors.items():
                tasks.create_task(mirror.run(), name=f"mirror-{resource.plural}")
            tasks.create_task(self._reports.run(), name="scheduler-reports")
            for mirror in mirrors.values():
                await mirror.wait_synced()
            try:
                await self._work()
            finally:
                await self._binder.drain(_DRAIN_S)

    async def _work(self) -> None:
        slice_s = self._clock()
        while True:
            now_s = self._clock()
            uid = self.state.queue.pop(now_s)
            if uid is None:
                await self._sleep(self.state.queue.due_s() - now_s)
                slice_s = self._clock()
                continue
            pod = self.state.pending.get(uid)
            if pod is not None:
                await self._try(pod, now_s)
            if now_s - slice_s > _SLICE_S:
                await asyncio.sleep(0)
                slice_s = self._clock()

    async def _sleep(self, wait_s: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(wait_s if wait_s != float("inf") else None):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _try(self, pod: Pending, now_s: float) -> None:
        kept = self.state.ledger.place(pod.uid)
        if kept is not None:
            await self._binder.look(pod, kept, now_s)
            return
        match self._decide(pod):
            case Placement() as placement:
                self.state.assume(pod, placement.node, placement.allocation)
                place = self.state.ledger.place(pod.uid)
                assert place is not None
                await self._binder.start(pod, place, now_s)
            case Unschedulable() as no:
                self.metrics.tried(Result.UNSCHEDULABLE, self._clock() - now_s)
                self._reports.waits(pod, lambda: no.message)
                self.state.queue.park(pod.uid, now_s)

    def _decide(self, pod: Pending) -> Placement | Unschedulable:
        began_s = self._clock()
        decision: Placement | Unschedulable | None = None
        if pod.nominated:
            decision = decide_on(self.state.cluster, pod.request, self._policy, (pod.nominated,))
        if not isinstance(decision, Placement):
            decision = decide(self.state.cluster, pod.request, self._policy)
        self.metrics.decision_seconds.observe(self._clock() - began_s)
        return decision


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
