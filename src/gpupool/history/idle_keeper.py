"""Carries out the idle policy beside the collector: reads the history, warns, scales to zero."""

import asyncio
import datetime
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from gpupool.history.database import NoHistory
from gpupool.history.facts import Held
from gpupool.history.idle_policy import (
    NOTHING,
    IdlePolicy,
    IdleWorkload,
    Step,
    idle_workloads,
    keeps_idle,
    pod_warning,
    step,
)
from gpupool.history.pages import History
from gpupool.history.parking import RESOURCES
from gpupool.history.series import Kind
from gpupool.history.usage import idle_pods
from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.events import NORMAL, WARNING, Recorder
from kubeclient.objects import Obj
from kubeclient.resources import NAMESPACES, Resource

log = logging.getLogger(__name__)

EVERY_S = 600.0
# Events are kept for an hour: who looks at a workload later sees the warning, too.
AGAIN_S = 3000.0
# All of this time must be told and idle, too: if agents are silent now, nobody knows.
RECENT_S = 1200
# If all cards seem idle at once, the error may be ours: people have time to stop it.
MOST_AT_ONCE = 10


@dataclass(slots=True)
class Keeper:
    kube: Kube
    history: History
    policy: IdlePolicy
    recorder: Recorder
    clock: Callable[[], float] = time.time
    _said_s: dict[tuple[str, str], float] = field(default_factory=dict)

    async def round(self, held: Collection[Held]) -> None:
        """`held`: containers that ask for cards and have not ended. Raises NoHistory."""
        now_s = self.clock()
        mine = [each for each in held if each.namespace not in self.policy.except_namespaces]
        recent = {_key(each) for each in await self._idle(mine, now_s, RECENT_S)}
        warned = [w for w in await self._idle(mine, now_s, self.policy.warn_s) if _key(w) in recent]
        long = set()
        if warned and self.policy.scale_s is not None:
            long = {_key(each) for each in await self._idle(mine, now_s, self.policy.scale_s)}
        self._said_s = {_key(w): self._said_s.get(_key(w), 0.0) for w in warned}
        places: dict[str, Obj | None] = {}
        scaled = 0
        for each in warned:
            try:
                if each.namespace not in places:
                    places[each.namespace] = await self._found(NAMESPACES, each.namespace)
                place = places[each.namespace]
                if place is not None and not keeps_idle(place):
                    is_long = _key(each) in long and scaled < MOST_AT_ONCE
                    scaled += await self._one(each, now_s, is_long=is_long)
            except KubeError as error:  # changed meanwhile, no right: the next round may succeed
                about = {"namespace": each.namespace, "workload": each.name, "error": str(error)}
                log.warning("an idle workload is left as it is", extra=about)

    async def _idle(self, held: Collection[Held], now_s: float, idle_s: int) -> list[IdleWorkload]:
        sums = await self.history.sums(Kind.CONTAINER, now_s - idle_s, now_s)
        running = {
            f"{each.namespace}/{each.pod}/{each.container}": each.from_ms / 1000
            for each in held
            if each.shares
        }
        idle = idle_pods(sums.of, running, int(now_s - idle_s), int(now_s))
        return idle_workloads(idle, held)

    async def _one(self, idle: IdleWorkload, now_s: float, *, is_long: bool) -> int:
        """1 if it was scaled to zero."""
        kind, _, name = idle.name.partition("/")
        resource = RESOURCES.get(kind)
        if resource is None:
            if self._speaks(idle, now_s):
                for pod in idle.pods:
                    self.recorder.event(_pod(pod), WARNING, "GpuIdle", pod_warning(idle, pod))
            return 0
        workload = await self._found(resource, name, idle.namespace)
        chosen = (
            NOTHING
            if workload is None
            else step(workload, idle, self.policy, now_s, is_long=is_long)
        )
        if workload is None or chosen == NOTHING:
            return 0
        if chosen.change is not None:
            await self.kube.patch(resource.path(idle.namespace, name), chosen.change)
        about = {"apiVersion": resource.api_version, "kind": kind, "metadata": workload["metadata"]}
        self._say(about, idle, chosen, now_s)
        return 1 if chosen.replicas else 0

    def _say(self, about: Obj, idle: IdleWorkload, chosen: Step, now_s: float) -> None:
        if chosen.replicas:
            fields = {"namespace": idle.namespace, "workload": idle.name, "from": chosen.replicas}
            log.info("an idle workload is scaled to zero", extra=fields)
            self.recorder.event(about, NORMAL, "GpuIdleScaledToZero", chosen.event)
        elif self._speaks(idle, now_s):
            self.recorder.event(about, WARNING, "GpuIdle", chosen.event)

    def _speaks(self, idle: IdleWorkload, now_s: float) -> bool:
        # A clock that was set back does not silence anybody.
        if 0 <= now_s - self._said_s.get(_key(idle), 0.0) < AGAIN_S:
            return False
        self._said_s[_key(idle)] = now_s
        return True

    async def _found(self, resource: Resource, name: str, namespace: str = "") -> Obj | None:
        try:
            return await self.kube.get(resource, name, namespace)
        except NotFound:
            return None


async def keep(
    kube: Kube, history: History, policy: IdlePolicy, held: Callable[[], Collection[Held]]
) -> None:
    """Runs until it is cancelled. `held`: asked in each round."""
    recorder = Recorder(kube, "gpupool-history", lambda: datetime.datetime.now(datetime.UTC))
    keeper = Keeper(kube, history, policy, recorder)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(recorder.run())
        while True:
            try:
                await keeper.round(held())
            except NoHistory as error:
                log.warning("who is idle is unknown", extra={"error": str(error)})
            except Exception:  # the collector beside it must go on
                log.exception("the idle policy was not carried out")
            await asyncio.sleep(EVERY_S)


def _key(idle: IdleWorkload) -> tuple[str, str]:
    return idle.namespace, idle.name


def _pod(held: Held) -> Obj:
    metadata = {"namespace": held.namespace, "name": held.pod, "uid": held.uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
