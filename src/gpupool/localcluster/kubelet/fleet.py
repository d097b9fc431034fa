"""Fleet: all nodes of a local cluster in one object, in the API server's own process.

It adopts every Node object that a pool has made, keeps it ready, and runs the pods that are bound
to it. Thousands of nodes share one watch of pods, one queue and one heap of timers.
"""

import asyncio
import datetime
import time

from gpupool.contract import names
from gpupool.contract.node_streams import NodeStreams
from gpupool.contract.objects import Obj
from gpupool.kube.client import Kube
from gpupool.kube.events import Recorder
from gpupool.kube.mirror import Mirror
from gpupool.kube.resources import NAMESPACES, NODES, PODS
from gpupool.localcluster.kubelet.heartbeats import Heartbeats
from gpupool.localcluster.kubelet.node import Node, is_ours, node_from, refresh
from gpupool.localcluster.kubelet.notices import Notices
from gpupool.localcluster.kubelet.pods import Pods
from gpupool.localcluster.kubelet.runtime import Runtime
from gpupool.localcluster.kubelet.runtime_timer import TimerRuntime
from gpupool.localcluster.kubelet.settings import PROCESS, TIMER, FleetSettings

__all__ = ["Fleet", "FleetSettings"]

_HEARTBEAT_WORKERS = 32
# Bound pods only: the others are the scheduler's.
_BOUND = {"fieldSelector": "spec.nodeName!="}


class Fleet:
    def __init__(self, settings: FleetSettings) -> None:
        self._settings = settings
        self._nodes: dict[str, Node] = {}

    def streams(self, node: str) -> NodeStreams | None:
        return None

    def node_usage(self) -> dict[str, Obj]:
        return {}

    def pod_usage(self) -> dict[tuple[str, str], list[Obj]]:
        return {}

    async def run(self, kube: Kube) -> None:
        """Runs until cancelled; nothing of a pod is left running then."""
        recorder = Recorder(kube, "kubelet", lambda: datetime.datetime.now(datetime.UTC))
        nodes, pods = Mirror(kube, NODES), Mirror(kube, PODS, query=_BOUND)
        namespaces = Mirror(kube, NAMESPACES)
        runtimes: dict[str, Runtime] = {TIMER: TimerRuntime(), PROCESS: TimerRuntime()}
        beats = Heartbeats(self._settings, kube, nodes, recorder, time.time)
        keeper = Pods(self._settings, kube, pods, Notices(recorder), runtimes, time.time)
        keeper.runtime_of = lambda obj, node: self._runtime_of(obj, node, namespaces)
        async with asyncio.TaskGroup() as tasks:
            for mirror in (nodes, namespaces):
                tasks.create_task(mirror.run(), name=f"kubelet-{mirror.resource.plural}")
                await mirror.wait_synced()
            nodes.on_change(lambda old, new: self._node_changed(old, new, keeper, beats))
            pods.on_change(keeper.changed)
            tasks.create_task(pods.run(), name="kubelet-pods")
            tasks.create_task(recorder.run(), name="kubelet-events")
            tasks.create_task(keeper.timers.run(), name="kubelet-pod-timers")
            tasks.create_task(beats.timers.run(), name="kubelet-node-timers")
            for number in range(self._settings.writers):
                tasks.create_task(keeper.keep(), name=f"kubelet-pods-{number}")
            for number in range(_HEARTBEAT_WORKERS):
                tasks.create_task(beats.keep(), name=f"kubelet-nodes-{number}")

    def _runtime_of(self, obj: Obj, node: Node, namespaces: Mirror) -> str:
        """The pod's own word, its namespace's, its node's, or the cluster's."""
        namespace = namespaces.get(obj["metadata"]["namespace"]) or {"metadata": {}}
        for metadata in (obj["metadata"], namespace["metadata"]):
            said = (metadata.get("annotations") or {}).get(names.ANNOTATION_RUNTIME)
            if said in (TIMER, PROCESS):
                return str(said)
        return node.runtime if node.runtime in (TIMER, PROCESS) else self._settings.runtime

    def _node_changed(
        self, old: Obj | None, new: Obj | None, keeper: Pods, beats: Heartbeats
    ) -> None:
        name = (new or old or {})["metadata"]["name"]
        node = self._nodes.get(name)
        gone = new is None or not is_ours(new) or (node and node.uid != new["metadata"]["uid"])
        if node is not None and gone:
            del self._nodes[name]
            beats.remove(name)
            keeper.remove_node(name)
            node = None
        if new is None or not is_ours(new):
            return
        if node is None:
            node = self._nodes[name] = node_from(new)
            beats.add(node)
            keeper.add_node(node)
            return
        was_stopped = node.stopped
        refresh(node, new)
        if was_stopped and not node.stopped:
            beats.post_again(name)
            keeper.resume_node(name)
