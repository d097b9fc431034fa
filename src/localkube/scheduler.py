"""A small scheduler: pods without a node in, Bindings out.

It knows resources, taints and tolerations, node selectors, node affinity, cordoned nodes and host
ports, and puts a pod on the fitting node with the largest free share. It does not know pod
affinity, topology spread or preemption: a pod that requires one of them waits, and its event says
so. A product with a scheduler of its own passes that instead (`Extension.scheduler`).
"""

import asyncio
import datetime
import logging
from collections import Counter
from collections.abc import Iterable

from kubeclient.client import STRATEGIC_PATCH, Kube
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.events import NORMAL, WARNING, Recorder
from kubeclient.mirror import Mirror
from kubeclient.names import DEFAULT_SCHEDULER_NAME
from kubeclient.objects import Obj
from kubeclient.placement import Effect
from kubeclient.resources import NODES, PODS
from localkube.placement import NodeDemand, NodeOffer, node_demand, node_offer

log = logging.getLogger(__name__)

_RETRY_S = 5.0  # after a write that failed
_FINISHED = ("Succeeded", "Failed")


async def run(kube: Kube) -> None:
    """Runs until cancelled."""
    await Scheduler(kube).run()


class Scheduler:
    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._nodes, self._pods = Mirror(kube, NODES), Mirror(kube, PODS)
        self._changed = asyncio.Event()
        # Pods that were bound a moment ago, by uid. The mirror of pods may not show it yet, and
        # what they take of their node must be counted from the moment of the decision.
        self._assumed: dict[str, tuple[str, NodeDemand]] = {}
        self._said: dict[str, str] = {}  # the last reason given for a waiting pod, by its uid
        self._events = Recorder(
            kube, "default-scheduler", lambda: datetime.datetime.now(datetime.UTC)
        )

    async def run(self) -> None:
        for mirror in (self._nodes, self._pods):
            mirror.on_change(lambda old, new: self._changed.set())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._events.run(), name="scheduler-events")
            for mirror in (self._nodes, self._pods):
                tasks.create_task(mirror.run(), name=f"scheduler-{mirror.resource.plural}")
                await mirror.wait_synced()
            while True:
                self._changed.clear()
                if not await self._round():
                    tasks.create_task(self._look_again(), name="scheduler-retry")
                await self._changed.wait()

    async def _look_again(self) -> None:
        await asyncio.sleep(_RETRY_S)
        self._changed.set()

    async def _round(self) -> bool:
        """Tries every waiting pod once, the highest priority first. False: a write failed."""
        waiting = [pod for pod in self._pods if _is_waiting(pod, self._assumed)]
        if not waiting:
            return True
        nodes = _usage(self._nodes, self._pods, self._assumed)
        self._said = {uid: self._said[uid] for uid in map(_uid, waiting) if uid in self._said}
        succeeded = True
        for pod in sorted(waiting, key=_order):
            try:
                await self._place(pod, nodes)
            except (Conflict, NotFound):
                self._assumed.pop(_uid(pod), None)  # it changed or went: the mirror will tell
            except KubeError as error:
                self._assumed.pop(_uid(pod), None)
                log.warning("pod not bound", extra={"pod": _name(pod), "error": str(error)})
                succeeded = False
        return succeeded

    async def _place(self, pod: Obj, nodes: "list[_NodeUse]") -> None:
        demand = node_demand(pod)
        reasons = Counter[str]()
        best: _NodeUse | None = None
        for node in nodes:
            why = _unsupported(pod["spec"]) or node.refusal(demand)
            if why:
                reasons[why] += 1
            elif best is None or node.free_share(demand) > best.free_share(demand):
                best = node
        if best is None:
            await self._refuse(pod, len(nodes), reasons)
            return
        best.take(demand)
        self._assumed[_uid(pod)] = (best.offer.name, demand)
        await self._kube.bind(pod, best.offer.name, {})
        text = f"Successfully assigned {_name(pod)} to {best.offer.name}"
        self._events.event(pod, NORMAL, "Scheduled", text)

    async def _refuse(self, pod: Obj, total: int, reasons: Counter[str]) -> None:
        """As kube-scheduler says it: `0/3 nodes are available: 3 Insufficient cpu.`"""
        listed = ", ".join(sorted(f"{count} {why}" for why, count in reasons.items()))
        found = f": {listed}." if listed else "."
        text = f"0/{total} nodes are available{found}"
        if self._said.get(_uid(pod)) == text:
            return
        self._said[_uid(pod)] = text
        self._events.event(pod, WARNING, "FailedScheduling", text)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": text,
        }
        metadata = pod["metadata"]
        path = PODS.path(metadata["namespace"], metadata["name"], "status")
        await self._kube.patch(
            path, {"status": {"conditions": [condition]}}, content_type=STRATEGIC_PATCH
        )


class _NodeUse:
    """What a node offers, and what is taken of it so far."""

    def __init__(self, offer: NodeOffer) -> None:
        self.offer = offer
        self._used = Counter[str]()
        self._ports: list[NodeDemand] = []

    def take(self, demand: NodeDemand) -> None:
        self._used.update(demand.resources)
        if demand.host_ports:
            self._ports.append(demand)

    def refusal(self, demand: NodeDemand) -> str:
        """Why the pod cannot run here, in kube-scheduler's words; empty: it can."""
        node = self.offer
        for taint in demand.untolerated(node):
            if taint.effect != Effect.PREFER_NO_SCHEDULE:
                return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
        if node.unschedulable and not _tolerates_cordon(demand):
            return "node(s) were unschedulable"
        if not demand.selects(node):
            return "node(s) didn't match Pod's node affinity/selector"
        taken = [port for other in self._ports for port in other.host_ports]
        if any(port.collides(other) for port in demand.host_ports for other in taken):
            return "node(s) didn't have free ports for the requested pod ports"
        for name, amount in demand.resources.items():
            if amount and self._used[name] + amount > node.allocatable.get(name, 0):
                return "Too many pods" if name == "pods" else f"Insufficient {name}"
        return ""

    def free_share(self, demand: NodeDemand) -> float:
        """The share of CPU and memory that would stay free, the smaller of the two."""
        return min(
            1 - (self._used[name] + demand.resources.get(name, 0)) / most
            for name in ("cpu", "memory", "pods")
            if (most := self.offer.allocatable.get(name, 0))
        )


def _usage(
    nodes: Iterable[Obj], pods: Iterable[Obj], assumed: dict[str, tuple[str, NodeDemand]]
) -> list[_NodeUse]:
    """The nodes in the order of their names. Drops what was assumed and the mirror shows now."""
    found = {node["metadata"]["name"]: _NodeUse(node_offer(node)) for node in nodes}
    seen = set()
    for pod in pods:
        if pod["spec"].get("nodeName"):
            assumed.pop(_uid(pod), None)
        else:
            seen.add(_uid(pod))
        use = found.get(pod["spec"].get("nodeName", ""))
        if use is not None and (pod.get("status") or {}).get("phase") not in _FINISHED:
            use.take(node_demand(pod))
    for uid, (node, demand) in list(assumed.items()):
        if uid not in seen:
            del assumed[uid]
        elif node in found:
            found[node].take(demand)
    return [found[name] for name in sorted(found)]


def _is_waiting(pod: Obj, assumed: dict[str, tuple[str, NodeDemand]]) -> bool:
    spec, metadata = pod["spec"], pod["metadata"]
    return (
        not spec.get("nodeName")
        and spec.get("schedulerName", DEFAULT_SCHEDULER_NAME) == DEFAULT_SCHEDULER_NAME
        and "deletionTimestamp" not in metadata
        and not spec.get("schedulingGates")
        and (pod.get("status") or {}).get("phase") not in _FINISHED
        and metadata["uid"] not in assumed
    )


def _tolerates_cordon(demand: NodeDemand) -> bool:
    key = "node.kubernetes.io/unschedulable"
    return any(
        toleration.exists and toleration.key in ("", key) for toleration in demand.tolerations
    )


def _unsupported(spec: Obj) -> str:
    affinity = spec.get("affinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for field in ("podAffinity", "podAntiAffinity"):
        if (affinity.get(field) or {}).get(required):
            return f"spec.affinity.{field}.{required} is not supported by this scheduler"
    for spread in spec.get("topologySpreadConstraints") or ():
        if spread.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            return "spec.topologySpreadConstraints is not supported by this scheduler"
    if spec.get("resourceClaims"):
        return "spec.resourceClaims is not supported by this scheduler"
    return ""


def _order(pod: Obj) -> tuple[int, str, str]:
    metadata = pod["metadata"]
    return -(pod["spec"].get("priority") or 0), metadata["creationTimestamp"], metadata["name"]


def _uid(pod: Obj) -> str:
    return str(pod["metadata"]["uid"])


def _name(pod: Obj) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
