"""Scheduler: decides where pending pods go, and sends their Bindings concurrently.

A decision is entered in the ledger at once. So the next decision does not wait for the API server,
and no card is given out twice. All state comes from the API: a new leader reads everything before
its first decision.
"""

import asyncio
import contextlib
import datetime
import logging
from collections.abc import Callable
from dataclasses import dataclass

from gpupool.contract.names import SCHEDULER_NAME
from gpupool.engine.policies import DEFAULT
from gpupool.engine.room import cluster_room
from gpupool.scheduler.bind import Binder
from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.cycle import Cycle
from gpupool.scheduler.findings import OVERCOMMITTED
from gpupool.scheduler.follow import follow
from gpupool.scheduler.inherited import inherit_claims, inherit_room
from gpupool.scheduler.ledger import Knowledge
from gpupool.scheduler.making_room import RoomMaker
from gpupool.scheduler.metrics import Metrics, Now
from gpupool.scheduler.pending import Pending
from gpupool.scheduler.preemption import Evictor
from gpupool.scheduler.report import SCHEDULER_ERROR, Reports
from gpupool.scheduler.resizer import Resizer
from gpupool.scheduler.writes import Write, WriteContext, Writes
from kubeclient.client import Kube
from kubeclient.events import Recorder
from kubeclient.lease import seconds_since_boot
from kubeclient.mirror import Changed
from kubeclient.objects import Obj

log = logging.getLogger(__name__)

WRITES_IN_FLIGHT = 128
_DRAIN_S = 5.0
_SLICE_S = 0.002  # decisions without a pause; then other tasks of the event loop run


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """`names`: the values of spec.schedulerName that are served."""

    policy: str = DEFAULT  # by its name in POLICIES
    names: frozenset[str] = frozenset({SCHEDULER_NAME})
    clock: Callable[[], float] = seconds_since_boot
    # Asked before every write: false from the moment on in which another may be the leader.
    may_act: Callable[[], bool] = lambda: True
    keeps_room: bool = True  # for pods that have waited for long


class Scheduler:
    def __init__(self, kube: Kube, settings: SchedulerSettings) -> None:
        self._kube = kube
        self._clock = settings.clock
        self._wake = asyncio.Event()
        self._writes = Writes(WRITES_IN_FLIGHT)
        self._may_act = settings.may_act
        self._policy = settings.policy
        self.is_synced = False
        self.metrics = Metrics()
        self.on_change: Callable[[], None] = lambda: None  # called as well when there may be work
        self.state = ClusterState(settings.names, settings.policy, self._changed, settings.clock)
        self.state.kept_room.is_on = settings.keeps_room
        speakers = settings.names | {SCHEDULER_NAME}  # events about bound pods come from it
        events = {name: Recorder(kube, name, _now, self._writes.below_limit) for name in speakers}
        self._reports = Reports(kube, events, self.state.pending, clock=settings.clock, now=_now)
        self.state.on_forget = self._reports.forget
        context = WriteContext(
            kube, self.state, self._reports, self.metrics, settings.clock, _now, settings.may_act
        )
        self._resizer = Resizer(context)
        self._room = RoomMaker(
            self.state, Evictor(context), self._reports, self.metrics, settings.clock
        )
        self._cycle = Cycle(
            self.state,
            Binder(context),
            self._room,
            self._reports,
            self.metrics,
            settings.clock,
        )

    def warn(self, about: Obj, reason: str, message: str) -> None:
        """An event about an object, once the scheduler runs."""
        self._reports.warn(about, reason, message)

    async def run(self, *also_pods: Changed) -> None:
        """Until cancelled; then waits for writes in flight.

        `also_pods`: more handlers for changes of pods.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reports.run(), name="scheduler-reports")
            await follow(self._kube, self.state, tasks, *also_pods)
            self._tell()
            self._resizer.begin()
            self.inherit()
            self.is_synced = True
            try:
                await self._work()
            finally:
                # A leader that lost the Lease does not wait: another decides now.
                await self._writes.drain(_DRAIN_S if self._may_act() else 0.0)

    def inherit(self) -> None:
        """What an earlier leader had begun. Once, before the first decision."""
        inherit_claims(self._room)
        if self.state.kept_room.is_on:
            inherit_room(self.state)

    async def _work(self) -> None:
        slice_s = self._clock()
        while True:
            now_s = self._clock()
            # Waiting for a free slot is safe here and below: what the write does is held in the
            # ledger already.
            for write in self._resizer.due_writes(now_s):
                await self._writes.start(write)
            uid = self._next(now_s)
            if uid is None:
                await self._sleep(self._due_s() - now_s)
                slice_s = self._clock()
                continue
            pod = self.state.pending.get(uid)
            for write in self._tried(pod) if pod is not None else ():
                await self._writes.start(write)
            # Without this, thousands of pending pods would keep watches and renewals of the Lease
            # waiting.
            if now_s - slice_s > _SLICE_S:
                await asyncio.sleep(0)
                slice_s = self._clock()

    def _tried(self, pod: Pending) -> list[Write]:
        """An internal error with one pod is logged and reported on that pod. The others go on."""
        try:
            return self._cycle.try_pod(pod)
        except Exception as error:
            log.exception("scheduling a pod failed", extra={"pod": pod.shown})
            words = f"internal error of the scheduler: {error!r}"
            self._reports.waits(pod, lambda: words, SCHEDULER_ERROR)
            self.state.queue.back_off(pod.uid, self._clock())
            return []

    def metrics_text(self) -> str:
        state = self.state
        unconfirmed = sum(
            assignment.knowledge is not Knowledge.SEEN
            for _, assignment in state.ledger.assignments()
        )
        sizes = {
            "nodes": len(state.cluster),
            "pods": len(state.ledger),
            "assumed_pods": unconfirmed,
        }
        return self.metrics.text(
            Now(
                state.queue.counts(),
                sizes,
                state.queue.incoming,
                self._may_act(),
                max((self._clock() - pod.seen_s for pod in state.pending.values()), default=0.0),
                cluster_room(state.cluster),
                self._policy,
                (len(state.kept_room), state.kept_room.made),
            )
        )

    def _next(self, now_s: float) -> str | None:
        self._tell()
        self.state.expire_preemption_claims()
        self._room.leave_ill_cards()
        if self.state.kept_room.is_on:
            self._keep_room()
        return self.state.next_pod(now_s)

    def _due_s(self) -> float:
        """When there is something to do without a change in the cluster."""
        state = self.state
        due_s = min(state.queue.due_s(), state.claims_due_s(), state.resizing.due_s())
        # Whoever keeps no room never looks, so that the time for it would always be over.
        if state.kept_room.is_on and state.pending:
            return min(due_s, state.kept_room.due_s())
        return due_s

    def _keep_room(self) -> None:
        """An internal error ends it for this term. Pods are scheduled as before."""
        try:
            for uid in self.state.keep_room():
                pod = self.state.pending[uid]
                self._reports.note(pod.as_object, "Reserved", self.state.kept_room.words(uid))
                self._reports.at_once(uid)
        except Exception:
            log.exception("keeping room for pods that wait failed")
            self.state.give_up_kept_room()

    def _tell(self) -> None:
        for found in self.state.findings.take():
            if found.reason == OVERCOMMITTED:
                self.metrics.other_writers.inc()
            self._reports.warn(found.about, found.reason, found.message)

    def _changed(self) -> None:
        self._wake.set()
        self.on_change()

    async def _sleep(self, wait_s: float) -> None:
        # No wake-up is lost: nothing has awaited since `_next` found no pod and the due time was
        # read.
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s if wait_s != float("inf") else None):
                await self._wake.wait()


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
