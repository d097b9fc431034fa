"""The loop: pods without a node come in, a decision is made, the Binding goes out beside it.

A decision holds its resources at once (assume); the watch confirms it; a refused Binding gives
them back. So the next decision never waits for the API server, and no node is overcommitted.
"""

import asyncio
import datetime
import logging
from collections import deque

from gpupool.contract.nodes import node_of
from gpupool.contract.objects import Obj
from gpupool.contract.pods import pod_request
from gpupool.core.request import PodRequest
from gpupool.engine.decide import Placement, Unschedulable, decide
from gpupool.engine.usage import Usage
from gpupool.kube.client import Kube
from gpupool.kube.errors import KubeError, NoAnswer, Refused
from gpupool.kube.events import NORMAL, WARNING, Recorder
from gpupool.kube.mirror import Mirror
from gpupool.kube.resources import NODES, PODS

log = logging.getLogger(__name__)

BINDINGS_IN_FLIGHT = 128
_RETRY_S = 1.0
_LONGEST_RETRY_S = 30.0
_DONE = ("Succeeded", "Failed")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Scheduler:
    """State of one scheduler: everything in it is rebuilt from the API at any start."""

    def __init__(self, kube: Kube, names: frozenset[str]) -> None:
        self._kube = kube
        self._names = names  # values of spec.schedulerName that are ours
        self._nodes: dict[str, Usage] = {}
        self._order: list[Usage] = []
        self._start = 0
        self._place: dict[str, str] = {}  # pod uid -> node whose resources it holds
        self._waiting: deque[str] = deque()
        self._pods: dict[str, Obj] = {}  # ours, without a node, by uid
        self._queued: set[str] = set()
        self._parked: set[str] = set()  # fit nowhere; a change may help them
        self._attempts: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(BINDINGS_IN_FLIGHT)
        self._events = Recorder(kube, "default-scheduler", _now)

    async def run(self) -> None:
        """Until cancelled."""
        nodes, pods = Mirror(self._kube, NODES), Mirror(self._kube, PODS)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(nodes.run(), name="mirror-nodes")
            tasks.create_task(pods.run(), name="mirror-pods")
            tasks.create_task(self._events.run(), name="scheduler-events")
            await nodes.wait_synced()
            await pods.wait_synced()
            while True:
                await self._next(tasks)

    async def _next(self, tasks: asyncio.TaskGroup) -> None:
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        uid = self._waiting.popleft()
        self._queued.discard(uid)
        pod = self._pods.get(uid)
        if pod is None:
            return
        request = pod_request(pod)
        unanswered = self._place.get(uid)
        if unanswered is not None:  # an earlier Binding got no answer: ask again for the same
            await self._slots.acquire()
            tasks.create_task(self._bind(pod, request, unanswered))
            return
        match decide(request, self._order, self._start):
            case Placement() as placement:
                self._start = (self._start + placement.looked_at) % len(self._order)
                self._hold(request, placement.node)
                await self._slots.acquire()
                tasks.create_task(self._bind(pod, request, placement.node))
            case Unschedulable() as no:
                self._parked.add(uid)
                tasks.create_task(self._report(pod, no.message))

    async def _bind(self, pod: Obj, request: PodRequest, node: str) -> None:
        uid = request.uid
        try:
            await self._kube.bind(pod, node, {})
        except NoAnswer:
            # It may have happened: keep the hold; the watch will tell, or the retry be refused.
            self._retry(uid)
        except Refused as error:
            self._release(uid)
            if error.code not in (404, 409):
                log.warning("bind refused", extra={"pod": request.name, "error": str(error)})
                self._retry(uid)
        else:
            self._attempts.pop(uid, None)
            where = f"{request.namespace}/{request.name}"
            message = f"Successfully assigned {where} to {node}"
            self._events.event(pod, NORMAL, "Scheduled", message)
        finally:
            self._slots.release()

    async def _report(self, pod: Obj, message: str) -> None:
        """Says why the pod waits, in its status and as an event; only when that is news."""
        metadata = pod["metadata"]
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        known = [
            c for c in pod.get("status", {}).get("conditions") or () if c["type"] == "PodScheduled"
        ]
        self._events.event(pod, WARNING, "FailedScheduling", message)
        if known and known[0].get("message") == message:
            return
        condition["lastTransitionTime"] = _now().strftime("%Y-%m-%dT%H:%M:%SZ")
        others = [
            c for c in pod.get("status", {}).get("conditions") or () if c["type"] != "PodScheduled"
        ]
        path = PODS.path(metadata["namespace"], metadata["name"], "status")
        patch = {
            "metadata": {"uid": metadata["uid"]},
            "status": {"conditions": [*others, condition]},
        }
        try:
            await self._kube.patch(path, patch)
        except KubeError as error:
            log.debug("condition not written", extra={"error": str(error)})

    # -- what the API says -----------------------------------------------------------------

    def _node_changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is None:
            assert old is not None
            gone = self._nodes.pop(old["metadata"]["name"], None)
            for uid in gone.pods if gone else ():
                self._place.pop(uid, None)
        else:
            node = node_of(new)
            usage = self._nodes.get(node.name)
            if usage is None:
                self._nodes[node.name] = Usage(node)
            elif usage.node == node:
                return  # a heartbeat
            else:
                usage.node = node
        self._order = [self._nodes[name] for name in sorted(self._nodes)]
        self._start = self._start % len(self._order) if self._order else 0
        self._unpark()

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        pod = new or old
        assert pod is not None
        uid = pod["metadata"]["uid"]
        node = pod["spec"].get("nodeName")
        if new is None or new.get("status", {}).get("phase") in _DONE:
            self._forget(uid)
            if self._release(uid):
                self._unpark()
        elif node:
            self._forget(uid)
            if self._place.get(uid) != node:
                self._release(uid)
                self._hold(pod_request(new), node)
        elif self._is_ours(new):
            fresh = uid not in self._pods
            gates_opened = bool(old and old["spec"].get("schedulingGates"))
            self._pods[uid] = new
            if fresh or gates_opened:
                self._enqueue(uid)

    def _is_ours(self, pod: Obj) -> bool:
        spec = pod["spec"]
        return (
            spec.get("schedulerName") in self._names
            and not spec.get("schedulingGates")
            and "deletionTimestamp" not in pod["metadata"]
        )

    # -- holds and queue -------------------------------------------------------------------

    def _hold(self, request: PodRequest, node: str) -> None:
        usage = self._nodes.get(node)
        if usage is not None:
            usage.hold(request)
            self._place[request.uid] = node

    def _release(self, uid: str) -> bool:
        usage = self._nodes.get(self._place.pop(uid, ""))
        return usage is not None and usage.release(uid)

    def _forget(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._parked.discard(uid)
        self._attempts.pop(uid, None)

    def _enqueue(self, uid: str) -> None:
        if uid not in self._queued:
            self._queued.add(uid)
            self._parked.discard(uid)
            self._waiting.append(uid)
            self._wake.set()

    def _unpark(self) -> None:
        """Something changed for the better, perhaps: everyone who waits looks again."""
        for uid in list(self._parked):
            self._enqueue(uid)

    def _retry(self, uid: str) -> None:
        attempt = self._attempts.get(uid, 0)
        self._attempts[uid] = attempt + 1
        delay_s = min(_LONGEST_RETRY_S, _RETRY_S * 2 ** min(attempt, 10))
        asyncio.get_running_loop().call_later(delay_s, self._enqueue, uid)
