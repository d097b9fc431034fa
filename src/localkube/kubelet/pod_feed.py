"""The pods that are bound to nodes, as a stream of changes. No objects are kept here.

A mirror (kubeclient/mirror.py) would keep every object, and the fleet needs only its own small
record of most pods. The existing pods come through the same watch as later changes
(sendInitialEvents), in pieces, so that the event loop has time for others in between.

A pod that the listener fails with is logged and told, and the feed goes on with the others.
"""

import asyncio
import contextlib
import io
import logging
from typing import Protocol

import orjson

from kubeclient.client import Kube
from kubeclient.errors import Expired, KubeError, NoAnswer, Refused
from kubeclient.mirror_faults import Broke, Faults, unheard
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

    def gone(self, uid: str) -> None: ...

    def known(self) -> set[str]:
        """The uids of all pods that were seen and are not gone. After a new start of the watch,
        those that are not in the list are reported as gone."""


class PodFeed:
    def __init__(self, kube: Kube, listener: PodListener, broke: Broke = unheard) -> None:
        self._kube = kube
        self._listener = listener
        self._broke = broke
        self._faults = Faults(PODS)
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
        async with contextlib.aclosing(self._kube.watch(PODS, query=query)) as events:
            async for chunk in events:
                for number, line in enumerate(io.BytesIO(rest + chunk)):
                    if not line.endswith(b"\n"):
                        rest = line
                        break
                    self._take(line)
                    if number % _AT_A_TIME == _AT_A_TIME - 1:
                        await asyncio.sleep(0)  # let other tasks run
                else:
                    rest = b""

    def _take(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            kind, obj = event["type"], event["object"]
            metadata = obj["metadata"] if kind != "ERROR" else {}
            # Read before the listener is called, which may change the object.
            uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NoAnswer(f"an event that is none: {error!r}") from error
        match kind:
            case "ADDED" | "MODIFIED":
                if self._initial is not None:
                    self._initial.add(uid)
                self._tell_seen(obj)
            case "DELETED":
                self._tell_gone(uid)
                self._faults.forget((metadata.get("namespace", ""), metadata.get("name", "")), obj)
            case "ERROR":
                raise (Expired if obj.get("code") == 410 else Refused)(obj)
            case _:
                self._bookmark(metadata)
        # A watch cannot be resumed in the middle of the initial events: they are in no order.
        if self._initial is None:
            self._version = version

    def _tell_seen(self, obj: Obj) -> None:
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata.get("name", ""))
        try:
            self._listener.seen(obj)
        except Exception as error:  # noqa: BLE001  # one pod must not stop all nodes
            self._faults.add(key, obj, "kubelet", error, self._broke)
        else:
            if self._faults:
                self._faults.remove(key, obj, "kubelet")

    def _tell_gone(self, uid: str) -> None:
        try:
            self._listener.gone(uid)
        except Exception:  # as above; and nobody can look at the pod any more
            log.exception("pod not removed", extra={"uid": uid})

    def _bookmark(self, metadata: Obj) -> None:
        if self._initial is not None and _INITIAL_END in (metadata.get("annotations") or {}):
            told, self._initial = self._initial, None
            for uid in self._listener.known() - told:
                self._tell_gone(uid)
            self._synced.set()
