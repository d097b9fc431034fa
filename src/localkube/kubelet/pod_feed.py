"""The pods that are bound to nodes, as a stream of changes. No objects are kept here.

A mirror (kubeclient/mirror.py) would keep every object, and the fleet needs only its own small
record of most pods. The existing pods come through the same watch as later changes
(sendInitialEvents), in pieces, so that the event loop has time for others in between.
"""

import asyncio
import io
import logging
from typing import Protocol

import orjson

from kubeclient.client import Kube
from kubeclient.errors import Expired, KubeError, Refused
from kubeclient.objects import Obj
from kubeclient.resources import PODS

log = logging.getLogger(__name__)

# Only pods with a node. A pod that gets its node enters the selection, as an ADDED event.
_BOUND = {"fieldSelector": "spec.nodeName!=", "allowWatchBookmarks": "true"}
_FROM_THE_START = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
_INITIAL_END = "k8s.io/initial-events-end"
_AT_A_TIME = 100
_PAUSE_AFTER_FAILURE_S = 1.0


class PodListener(Protocol):
    def seen(self, obj: Obj) -> None:
        """The pod is new, has changed, or is sent again. The listener may change the object."""

    def gone(self, obj: Obj) -> None: ...

    def only(self, uids: set[str]) -> None:
        """The complete list, after a new start of the watch: all other pods are gone."""


class PodFeed:
    def __init__(self, kube: Kube, listener: PodListener) -> None:
        self._kube = kube
        self._listener = listener
        self._version = ""
        self._initial: set[str] | None = None  # uids sent so far, until the initial events end
        self._synced = asyncio.Event()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def run(self) -> None:
        """Follows until cancelled."""
        while True:
            try:
                await self._follow()
            except Expired:
                self._version = ""
            except KubeError as error:
                log.warning("watch of pods broken, trying again", extra={"error": str(error)})
                await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)

    async def _follow(self) -> None:
        query = _BOUND | {"resourceVersion": self._version}
        if not self._version:
            query |= _FROM_THE_START
            self._initial = set()
        rest = b""
        async for chunk in self._kube.watch(PODS, query=query):
            for number, line in enumerate(io.BytesIO(rest + chunk)):
                if not line.endswith(b"\n"):
                    rest = line
                    break
                self._take(orjson.loads(line))
                if number % _AT_A_TIME == _AT_A_TIME - 1:
                    await asyncio.sleep(0)  # let other tasks run
            else:
                rest = b""

    def _take(self, event: Obj) -> None:
        obj = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                if self._initial is not None:
                    self._initial.add(obj["metadata"]["uid"])
                self._listener.seen(obj)
            case "DELETED":
                self._listener.gone(obj)
            case "ERROR":
                raise (Expired if obj.get("code") == 410 else Refused)(obj)
            case _:
                self._bookmark(obj["metadata"])
        # A watch cannot be resumed in the middle of the initial events: they are in no order.
        if self._initial is None:
            self._version = obj["metadata"]["resourceVersion"]

    def _bookmark(self, metadata: Obj) -> None:
        if self._initial is not None and _INITIAL_END in (metadata.get("annotations") or {}):
            told, self._initial = self._initial, None
            self._listener.only(told)
            self._synced.set()
