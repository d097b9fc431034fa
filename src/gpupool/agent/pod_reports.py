"""PodReports: what the agent says about a pod of its node, and how it ends one."""

import logging
from collections.abc import Callable

from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.events import WARNING, Recorder
from kubeclient.objects import Obj

log = logging.getLogger(__name__)


class PodReports:
    def __init__(
        self, kube: Kube, node: str, recorder: Recorder, node_object: Callable[[], Obj | None]
    ) -> None:
        """`node_object` returns the node as last received from the API server."""
        self._kube = kube
        self._node = node
        self._recorder = recorder
        self._node_object = node_object

    def warn(self, pod: Obj, reason: str, words: str) -> None:
        """An event of the pod, and of the node."""
        shown = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        log.warning("event of a pod", extra={"pod": shown, "reason": reason, "text": words})
        # The items of a list lack apiVersion and kind, which an event must name.
        about = {"apiVersion": "v1", "kind": "Pod", **pod}
        self._recorder.event(about, WARNING, reason, words, host=self._node)
        node = self._node_object()
        if node is not None:
            self._recorder.event(node, WARNING, reason, f"{shown}: {words}", host=self._node)

    async def evict(self, pod: Obj) -> None:
        """Through the eviction API, which respects PodDisruptionBudgets. If it refuses now, the
        caller tries again later."""
        if "deletionTimestamp" in pod["metadata"]:
            return
        try:
            await self._kube.evict(pod)
        except NotFound:
            return
        except KubeError as error:
            extra = {"pod": pod["metadata"]["name"], "error": str(error)}
            log.warning("pod not evicted, trying again", extra=extra)
