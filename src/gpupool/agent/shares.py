"""Watches the pods of the node, and confirms on the node object when a share has shrunk."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from gpupool.agent.pod_files import VolumePath
from gpupool.agent.shrinks import Shrinks, WallState
from gpupool.contract.names import ANNOTATION_SHRINKS
from gpupool.contract.resize import reports_text
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

log = logging.getLogger(__name__)

_LOOK_S = 0.25  # between checks while a share shrinks
_PAUSE_AFTER_FAILURE_S = 2.0


class Shares:
    def __init__(
        self,
        kube: Kube,
        node: str,
        volumes: VolumePath,
        node_object: Callable[[], Obj | None],
        walls: WallState | None = None,
    ) -> None:
        """`node_object` returns the node as last received from the API server."""
        self._kube = kube
        self._node = node
        self._node_object = node_object
        self._shrinks = Shrinks(volumes, walls)
        self._changed = asyncio.Event()
        self.pods = Mirror(kube, PODS, query={"fieldSelector": f"spec.nodeName={node}"})
        self.pods.on_change(lambda old, new: self._changed.set())

    def look_again(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        await self.pods.wait_synced()
        while True:
            await self._report()
            with contextlib.suppress(TimeoutError):
                # Nothing tells us when the kubelet has changed a file, so files are read again
                # while a share shrinks. At all other times this task sleeps.
                async with asyncio.timeout(_LOOK_S if self._shrinks.is_waiting else None):
                    await self._changed.wait()
            self._changed.clear()

    async def _report(self) -> None:
        text = reports_text(self._shrinks.reports(self.pods, time.monotonic()))
        node = self._node_object()
        if node is None:
            return  # `look_again` is called when the node is received
        metadata = node["metadata"]
        if (metadata.get("annotations") or {}).get(ANNOTATION_SHRINKS, "") == text:
            return
        change = {"uid": metadata["uid"], "annotations": {ANNOTATION_SHRINKS: text or None}}
        try:
            await self._kube.patch(NODES.path(name=self._node), {"metadata": change})
        except KubeError as error:
            extra = {"node": self._node, "error": str(error)}
            log.warning("smaller shares not confirmed, trying again", extra=extra)
            await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)
            self._changed.set()
