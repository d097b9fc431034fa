"""Reports: events and conditions about pods, with the texts of kube-scheduler.

A pending pod is decided again with every change of the cluster. Making the message and writing it
is more expensive than the decision. So after each report a pod is silent for a while, twice as long
each time, and the message is made only when it is written.
"""

import asyncio
import datetime
import heapq
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpupool.scheduler.pending import Pending
from kubeclient.client import STRATEGIC_PATCH, Kube
from kubeclient.errors import KubeError
from kubeclient.events import NORMAL, WARNING, Recorder
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

_WRITES_IN_FLIGHT = 16
_FIRST_SILENCE_S = 1.0
_LONGEST_SILENCE_S = 60.0
_MAX_EVENT_CHARS = 1024

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


Words = Callable[[], str]  # makes the message; empty: there is nothing to report any more


@dataclass(slots=True)
class _News:
    why: Words
    reason: str
    said: str  # the last message that was reported
    silence_s: float = _FIRST_SILENCE_S
    is_due: bool = False


class Reports:
    def __init__(
        self,
        kube: Kube,
        events: Mapping[str, Recorder],  # by the name of the scheduler that a pod asked for
        pending: Mapping[str, Pending],
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime.datetime],
    ) -> None:
        """`pending`: the pending pods as they were last seen. No other pods are reported."""
        self._kube = kube
        self._events = events
        self._pending = pending
        self._clock = clock
        self._now = now
        self._news: dict[str, _News] = {}
        self._due: list[tuple[float, str]] = []
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(_WRITES_IN_FLIGHT)

    def bound(self, pod: Pending, node: str) -> None:
        self.forget(pod.uid)
        message = f"Successfully assigned {pod.shown} to {node}"
        self._events[pod.scheduler].event(pod.as_object, NORMAL, "Scheduled", message)

    def waits(self, pod: Pending, why: Words, reason: str = UNSCHEDULABLE) -> None:
        """The pod stays pending: report why, as condition and event, if the message is new."""
        news = self._news.get(pod.uid)
        if news is None:
            news = self._news[pod.uid] = _News(why, reason, "")
            self._say_at(self._clock(), pod.uid, news)
        news.why, news.reason = why, reason
        if not news.is_due:
            self._say_at(self._clock() + news.silence_s, pod.uid, news)

    def at_once(self, uid: str) -> None:
        """Others decide by what its condition says now: no silence."""
        news = self._news.get(uid)
        if news is not None:
            self._say_at(self._clock(), uid, news)

    def preempted(self, victim: Obj, by: Pending, node: str) -> None:
        message = f"Preempted by pod {by.uid} on node {node}"
        self._events[by.scheduler].event(victim, NORMAL, "Preempted", message)

    def note(self, about: Obj, reason: str, message: str) -> None:
        # Any recorder will do, but always the same: each counts repeated events on its own.
        min(self._events.items())[1].event(about, NORMAL, reason, message)

    def warn(self, about: Obj, reason: str, message: str) -> None:
        min(self._events.items())[1].event(about, WARNING, reason, message)

    def forget(self, uid: str) -> None:
        """The pod is not pending any more."""
        self._news.pop(uid, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for name, recorder in self._events.items():
                tasks.create_task(recorder.run(), name=f"events-{name}")
            while True:
                uid = await self._next()
                await self._slots.acquire()
                tasks.create_task(self._say(uid))

    def _say_at(self, when_s: float, uid: str, news: _News) -> None:
        news.is_due = True
        heapq.heappush(self._due, (when_s, uid))
        self._wake.set()

    async def _next(self) -> str:
        while True:
            self._wake.clear()
            wait_s = self._due[0][0] - self._clock() if self._due else None
            if wait_s is not None and wait_s <= 0:
                return heapq.heappop(self._due)[1]
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _say(self, uid: str) -> None:
        try:
            await self._report(uid)
        except Exception:  # a message about one pod that cannot be made must not stop all others
            log.exception("why a pod waits was not reported", extra={"pod": uid})
        finally:
            self._slots.release()

    async def _report(self, uid: str) -> None:
        news, pod = self._news.get(uid), self._pending.get(uid)
        if news is None or pod is None:
            self.forget(uid)
            return
        news.is_due = False
        news.silence_s = min(2 * news.silence_s, _LONGEST_SILENCE_S)
        words = news.why()
        if words and words != news.said:
            news.said = words
            recorder = self._events[pod.scheduler]
            recorder.event(pod.as_object, WARNING, "FailedScheduling", _cut(words))
        # Compared with what the API shows: a new leader does not write the same condition again.
        if words and words != pod.why:
            await self._write_condition(pod, news)

    async def _write_condition(self, pod: Pending, news: _News) -> None:
        """With the resourceVersion that was seen: a pod that was bound since must not get it."""
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": news.reason,
            "message": news.said,
            # Kubernetes: the time of the last change of `status`. A new message keeps it.
            "lastTransitionTime": pod.why_since or now,
            **({"observedGeneration": pod.generation} if pod.generation else {}),
        }
        path = PODS.path(pod.request.namespace, pod.request.name, "status")
        metadata = {"uid": pod.uid, "resourceVersion": pod.version}
        patch = {"metadata": metadata, "status": {"conditions": [condition]}}
        try:
            await self._kube.patch(path, patch, content_type=STRATEGIC_PATCH)
        except KubeError as error:  # often a conflict: the pod has changed. Try later.
            log.debug("condition not written", extra={"pod": pod.shown, "error": str(error)})
            self._say_at(self._clock() + news.silence_s, pod.uid, news)


def _cut(message: str) -> str:
    """Cut a message that is too long for an event, in the same way as kube-scheduler."""
    if len(message.encode()) <= _MAX_EVENT_CHARS:
        return message
    return message.encode()[: _MAX_EVENT_CHARS - 4].decode(errors="ignore") + " ..."
