"""The pods that are bound to nodes, as a stream of changes; nothing is kept of them here.

A mirror (kube/mirror.py) would hold every pod a second time; of most pods the fleet needs no more
than its own small record. What is there already comes through the same watch as what changes
later, in pieces, so that the server has time for others in between.
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

_BOUND = {"fieldSelector": "spec.nodeName!=", "allowWatchBookmarks": "true"}
_FROM_THE_START = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
_INITIAL_END = "k8s.io/initial-events-end"
_AT_A_TIME = 100
_PAUSE_AFTER_FAILURE_S = 1.0


class Audience(Protocol):
    def seen(self, obj: Obj) -> None:
        """The pod is new, or has changed, or is told of again. The object is the caller's own."""

    def gone(self, obj: Obj) -> None: ...

    def only(self, uids: set[str]) -> None:
        """There are no others."""


class PodFeed:
    def __init__(self, kube: Kube, audience: Audience) -> None:
        self._kube = kube
        self._audience = audience
        self._version = ""
        self._initial: set[str] | None = None  # uids told of so far, while all are being told
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
                    await asyncio.sleep(0)  # others have their turn
            else:
                rest = b""

    def _take(self, event: Obj) -> None:
        obj = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                if self._initial is not None:
                    self._initial.add(obj["metadata"]["uid"])
                self._audience.seen(obj)
            case "DELETED":
                self._audience.gone(obj)
            case "ERROR":
                raise (Expired if obj.get("code") == 410 else Refused)(obj)
            case _:
                self._bookmark(obj["metadata"])
        if self._initial is None:  # before that, one could not go on from here
            self._version = obj["metadata"]["resourceVersion"]

    def _bookmark(self, metadata: Obj) -> None:
        if self._initial is not None and _INITIAL_END in (metadata.get("annotations") or {}):
            told, self._initial = self._initial, None
            self._audience.only(told)
            self._synced.set()
