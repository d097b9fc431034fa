"""A scheduler on the API in memory, of which the test does every step by hand."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from gpupool.scheduler.cluster_state import ClusterState
from gpupool.scheduler.queue import State
from gpupool.scheduler.run import Scheduler, SchedulerSettings
from gpupool.scheduler.writes import Write
from kubeclient.client import Kube
from tests.scheduler.model_api import Fate, ModelApi, read_all
from tests.scheduler.world import POLICY

T = TypeVar("T")


async def with_answers(api: ModelApi, work: Coroutine[Any, Any, T], *fates: Fate) -> T:
    """Run the work to its end. Its requests meet these fates, in this order; later ones succeed."""
    task, left = asyncio.ensure_future(work), list(fates)
    async with asyncio.timeout(60):
        while not task.done():
            if api.requests:
                api.settle(api.requests[0], left.pop(0) if left else Fate.OK)
            await asyncio.sleep(0)
    return task.result()


class Stepped:
    keeps_room = True  # for pods that have waited for long

    def __init__(self) -> None:
        self.api = ModelApi()
        self.now_s = 1.0
        self.leads = True
        self.tries = 0  # by `settle`
        self.scheduler = self._new_scheduler()

    @property
    def state(self) -> ClusterState:
        return self.scheduler.state

    def _new_scheduler(self) -> Scheduler:
        settings = SchedulerSettings(
            POLICY,
            clock=lambda: self.now_s,
            may_act=lambda: self.leads,
            keeps_room=self.keeps_room,
        )
        return Scheduler(Kube(self.api), settings)

    def fail_over(self) -> None:
        """A new scheduler reads everything from the API."""
        self.scheduler = self._new_scheduler()
        read_all(self.api, self.scheduler)

    def tell(self) -> None:
        """Deliver all watch events."""
        handlers = {"nodes": self.state.node_changed, "pods": self.state.pod_changed}
        while self.api.news:
            resource, old, new = self.api.news.popleft()
            handlers[resource](old, new)

    def uid(self, name: str) -> str:
        return str(self.api.pods[name]["metadata"]["uid"])

    def try_next(self) -> list[Write]:
        """Let the scheduler try the next pod of its queue. The answer is what it wants to write."""
        self.tell()
        uid = self.scheduler._next(self.now_s)
        assert uid is not None
        return self.scheduler._cycle.try_pod(self.state.pending[uid])

    async def settle(self) -> set[str]:
        """Until the queue is empty and every Binding is done. The names of the pods with a node."""
        self.tell()
        limit = self.tries + 5000
        while (uid := self.scheduler._next(self.now_s)) is not None:
            self.tries += 1
            assert self.tries < limit, "the scheduler does not come to rest"
            await self.write(self.scheduler._cycle.try_pod(self.state.pending[uid]))
            self.tell()
        return {name for name, pod in self.api.pods.items() if pod["spec"].get("nodeName")}

    async def write(self, writes: list[Write], *fates: Fate) -> None:
        for write in writes:
            await with_answers(self.api, write(), *fates)

    async def end(self, name: str) -> None:
        """The pod is gone; what follows from that happens."""
        self.api.delete_pod(name)
        await self.settle()

    async def place(self, name: str, units: int, priority: int = 0, grace_s: int = 30) -> None:
        """Add a pod and have it bound."""
        self.api.add_pod(name, units, priority, grace_s=grace_s)
        await self.write(self.try_next())
        self.tell()
        assert self.api.pods[name]["spec"].get("nodeName")

    async def try_in_vain(self, name: str, units: int, priority: int) -> None:
        """Add a pod; it finds no room."""
        self.api.add_pod(name, units, priority)
        await self.settle()
        assert not self.api.pods[name]["spec"].get("nodeName")

    def said(self, name: str) -> str:
        """Why the pod waits, in the words that will be written to its condition."""
        return self.scheduler._reports._news[self.uid(name)].why()

    def backing_off(self) -> int:
        return self.state.queue.counts()[State.BACKING_OFF]
