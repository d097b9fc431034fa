"""Recorder: writes events as Kubernetes does; a repeated event raises the count of the first one.

Recording never blocks and never fails the caller: events are written from queues, those of one
object in order. When a queue is full, new events are dropped with a warning. Events of one object
are limited as in Kubernetes: 25 at once, then one every five minutes. While the program has more
important writes, events wait a little: an event costs the API server as much as any other write.
"""

import asyncio
import contextlib
import datetime
import logging
from collections import OrderedDict
from collections.abc import Callable

from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.objects import Obj
from kubeclient.resources import EVENTS

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
_QUEUE_LIMIT = 2_500
_WRITERS = 8  # concurrent requests: each waits for the disk of the server
_REMEMBERED = 4_096
_LONGEST_NAME = 253
_BURST = 25
_REFILL_S = 300.0
_LONGEST_WAIT_S = 10.0


def _name(about: str, suffix: str) -> str:
    """The longest name of an object has no room for a suffix."""
    return f"{about[: _LONGEST_NAME - 1 - len(suffix)].rstrip('.-')}.{suffix}"


class Recorder:
    """One per component: `source` is the component's name (kubelet, deployment-controller).

    `below_limit`: while this Event is not set, the program has more important writes.
    """

    def __init__(
        self,
        kube: Kube,
        source: str,
        now: Callable[[], datetime.datetime],
        below_limit: asyncio.Event | None = None,
    ) -> None:
        self._kube = kube
        self._source = source
        self._now = now
        self._below_limit = below_limit
        self._queues: list[asyncio.Queue[Obj]] = [
            asyncio.Queue(_QUEUE_LIMIT) for _ in range(_WRITERS)
        ]
        self._seen: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()
        self._allowances: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._serial = 0

    def event(
        self, about: Obj, kind: str, reason: str, message: str, *, host: str = "", path: str = ""
    ) -> None:
        """`about` is the object; `path` a field of it (spec.containers{web})."""
        metadata = about["metadata"]
        involved: Obj = {
            "apiVersion": about.get("apiVersion", "v1"),
            "kind": about.get("kind", ""),
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
        }
        if metadata.get("namespace"):
            involved["namespace"] = metadata["namespace"]
        if metadata.get("resourceVersion"):
            involved["resourceVersion"] = metadata["resourceVersion"]
        if path:
            involved["fieldPath"] = path
        now = self._now()
        if not self._may_speak(metadata.get("uid") or metadata["name"], now.timestamp()):
            return
        stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._serial += 1
        # The serial number keeps names apart that are made in the same microsecond.
        suffix = f"{int(now.timestamp() * 1e6):x}{self._serial:x}"
        source = {"component": self._source} | ({"host": host} if host else {})
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": _name(metadata["name"], suffix),
                "namespace": metadata.get("namespace") or "default",
            },
            "involvedObject": involved,
            "type": kind,
            "reason": reason,
            "message": message[:1024],
            "source": source,
            "reportingComponent": self._source,
            "reportingInstance": host,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        try:
            self._queues[hash(involved["uid"]) % _WRITERS].put_nowait(event)
        except asyncio.QueueFull:
            log.warning("event dropped", extra={"reason": reason, "object": metadata["name"]})

    def _may_speak(self, about: str, now_s: float) -> bool:
        """A token bucket for each object."""
        left, since_s = self._allowances.get(about, (float(_BURST), now_s))
        # A clock that is set back takes nothing away.
        left = min(float(_BURST), left + max(0.0, now_s - since_s) / _REFILL_S)
        speaks = left >= 1
        self._allowances[about] = (left - 1 if speaks else left, now_s)
        self._allowances.move_to_end(about)
        if len(self._allowances) > _REMEMBERED:
            self._allowances.popitem(last=False)
        return speaks

    async def run(self) -> None:
        async with asyncio.TaskGroup() as writers:
            for queue in self._queues:
                writers.create_task(self._write_all(queue))

    async def _write_all(self, queue: asyncio.Queue[Obj]) -> None:
        while True:
            events = [await queue.get()]
            await self._give_way()
            # Those that came in the meantime do not wait once more.
            events += [queue.get_nowait() for _ in range(queue.qsize())]
            for event in events:
                try:
                    await self._write(event)
                except KubeError as error:
                    log.warning("event not written", extra={"error": str(error)})
                except Exception:  # one event that cannot be sent must not stop the others
                    log.exception("event not written", extra={"event": event["metadata"]["name"]})

    async def _give_way(self) -> None:
        if self._below_limit is not None and not self._below_limit.is_set():
            with contextlib.suppress(TimeoutError):
                # Under constant load events are late, but they are written.
                async with asyncio.timeout(_LONGEST_WAIT_S):
                    await self._below_limit.wait()

    async def _write(self, event: Obj) -> None:
        involved = event["involvedObject"]
        key = (
            involved["uid"],
            involved.get("fieldPath", ""),
            event["type"],
            event["reason"],
            event["message"],
        )
        known = self._seen.get(key)
        if known is not None:
            name, count = known
            path = EVENTS.path(event["metadata"]["namespace"], name)
            change = {"count": count + 1, "lastTimestamp": event["lastTimestamp"]}
            try:
                await self._kube.patch(path, change)
            # By default API servers delete events after an hour.
            except NotFound:  # it has expired: create a new one
                pass
            else:
                self._remember(key, name, count + 1)
                return
        await self._kube.create(EVENTS, event)
        self._remember(key, event["metadata"]["name"], 1)

    def _remember(self, key: tuple[str, ...], name: str, count: int) -> None:
        self._seen[key] = (name, count)
        self._seen.move_to_end(key)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
