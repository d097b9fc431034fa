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
from typing import NamedTuple

from kubeclient.client import STRATEGIC_PATCH, Kube
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.events import NORMAL, WARNING, Recorder
from kubeclient.mirror import Key, Mirror, key_of
from kubeclient.mirror_faults import text_of
from kubeclient.names import DEFAULT_SCHEDULER_NAME
from kubeclient.objects import Obj
from kubeclient.placement import Effect, HostPort, Taint
from kubeclient.resources import NODES, PODS
from kubeclient.turns import Turns
from localkube.placement import NodeDemand, NodeOffer, node_demand, node_offer

log = logging.getLogger(__name__)

_Order = tuple[int, str, str]  # of pods that wait: priority, age and name
_RETRY_S = 5.0  # after a write that failed
_FINISHED = ("Succeeded", "Failed")
# A cordoned node counts as one with this taint, whether or not it has it already.
_CORDON = Taint("node.kubernetes.io/unschedulable", "", Effect.NO_SCHEDULE)


async def run(kube: Kube) -> None:
    """Runs until cancelled."""
    await Scheduler(kube).run()


class Scheduler:
    """All state is kept up to date change by change. To read every pod again at each change would
    cost seconds with thousands of pods, in the process that the API server runs in, too."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._nodes = Mirror(kube, NODES, broke=self._not_understood)
        self._pods = Mirror(kube, PODS, broke=self._not_understood)
        self._changed = asyncio.Event()  # a pod that waits could be placed now
        self._retry: asyncio.TimerHandle | None = None
        self._usage = _Usage()
        self._waiting: dict[str, tuple[_Order, Key]] = {}  # by uid
        # The uids of pods that were bound a moment ago. The mirror of pods may not show it yet, and
        # what they take of their node must be counted from the moment of the decision.
        self._assumed: set[str] = set()
        self._said: dict[str, str] = {}  # the last reason given for a waiting pod, by its uid
        self._events = Recorder(
            kube, "default-scheduler", lambda: datetime.datetime.now(datetime.UTC)
        )

    async def run(self) -> None:
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._events.run(), name="scheduler-events")
                for mirror in (self._nodes, self._pods):
                    tasks.create_task(mirror.run(), name=f"scheduler-{mirror.resource.plural}")
                    await mirror.wait_synced()
                while True:
                    await self._changed.wait()
                    # Before the round, so that a change during the round causes another one.
                    self._changed.clear()
                    await self._round()
        finally:
            if self._retry is not None:
                self._retry.cancel()

    def _node_changed(self, old: Obj | None, new: Obj | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        # A heartbeat changes nothing of what the node offers.
        if self._usage.offer(name, None if new is None else node_offer(new)):
            self._changed.set()

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None and (new is None or _uid(new) != _uid(old)):
            self._forget(_uid(old))
        if new is not None:
            self._see(new)
            if _uid(new) in self._waiting:
                self._changed.set()

    def _forget(self, uid: str) -> None:
        """The pod is gone, or has finished."""
        self._assumed.discard(uid)
        self._no_longer_waits(uid)
        if self._usage.put(uid, None):
            self._changed.set()

    def _no_longer_waits(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._said.pop(uid, None)

    def _see(self, pod: Obj) -> None:
        uid, node = _uid(pod), pod["spec"].get("nodeName")
        if (pod.get("status") or {}).get("phase") in _FINISHED:
            self._forget(uid)
        elif node:
            self._assumed.discard(uid)
            self._no_longer_waits(uid)
            if self._usage.put(uid, (node, node_demand(pod))):
                self._changed.set()
        elif uid not in self._assumed:
            if _is_ours(pod):
                self._waiting[uid] = _order(pod), key_of(pod)
            else:
                self._no_longer_waits(uid)

    async def _round(self) -> None:
        """Tries every waiting pod once, the highest priority first."""
        turns = Turns()
        for _, (namespace, name) in sorted(self._waiting.values()):
            await turns.next()
            pod = self._pods.get(name, namespace)
            if pod is None or _uid(pod) not in self._waiting:
                continue
            try:
                await self._place(pod)
            except (Conflict, NotFound):
                self._undo(pod)  # it changed or went: the mirror tells, or has told already
            except KubeError as error:
                self._undo(pod)
                log.warning("pod not bound", extra={"pod": _name(pod), "error": str(error)})
                self._try_again_later()
            except Exception as error:  # noqa: BLE001  # one pod must not keep others waiting
                self._undo(pod)
                self._broken(pod, error)
                self._try_again_later()

    def _broken(self, pod: Obj, error: Exception) -> None:
        text = text_of(error)
        if _uid(pod) in self._waiting and self._said.get(_uid(pod)) != text:
            self._said[_uid(pod)] = text
            log.error("pod not placed", extra={"pod": _name(pod)}, exc_info=error)
            self._not_understood(pod, error)

    def _not_understood(self, obj: Obj, error: Exception | None) -> None:
        if error is not None:
            text = f"the scheduler cannot read this object: {text_of(error)}"
            self._events.event(obj, WARNING, "NotUnderstood", text)

    def _undo(self, tried: Obj) -> None:
        """A write for the pod failed, or its answer was lost: go by what the mirror shows."""
        uid, metadata = _uid(tried), tried["metadata"]
        self._assumed.discard(uid)
        self._usage.put(uid, None)
        now = self._pods.get(metadata["name"], metadata["namespace"])
        if now is None or _uid(now) != uid:
            self._forget(uid)
            return
        self._see(now)
        if now["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            self._changed.set()  # the change came while the pod was assumed to be bound

    def _try_again_later(self) -> None:
        """One timer, however many writes fail: timers that renew each other would add up."""
        loop = asyncio.get_running_loop()
        if self._retry is None or self._retry.when() <= loop.time():
            self._retry = loop.call_later(_RETRY_S, self._changed.set)

    async def _place(self, pod: Obj) -> None:
        uid, demand = _uid(pod), node_demand(pod)
        reasons = Counter[str]()
        best: _NodeUse | None = None
        nodes = self._usage.nodes()
        for node in nodes:
            why = _unsupported(pod["spec"]) or node.refusal(demand)
            if why:
                reasons[why] += 1
            elif best is None or node.free_share(demand) > best.free_share(demand):
                best = node
        if best is None:
            await self._refuse(pod, len(nodes), reasons)
            return
        # Before the request: while it is under way, the mirror may still show the pod without a
        # node, and the pod must not be placed a second time.
        self._assumed.add(uid)
        self._no_longer_waits(uid)
        self._usage.put(uid, (best.offer.name, demand))
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
        # The pod may have gone during the write. An entry for it would stay for ever.
        if _uid(pod) in self._waiting:
            self._said[_uid(pod)] = text
        self._events.event(pod, WARNING, "FailedScheduling", text)


class _Taken:
    """What pods take of one node."""

    def __init__(self) -> None:
        self.amounts = Counter[str]()
        self.ports: dict[str, tuple[HostPort, ...]] = {}  # by the pod's uid

    def add(self, uid: str, demand: NodeDemand) -> None:
        self.amounts.update(demand.resources)
        if demand.host_ports:
            self.ports[uid] = demand.host_ports

    def remove(self, uid: str, demand: NodeDemand) -> None:
        self.amounts.subtract(demand.resources)
        self.ports.pop(uid, None)


class _Usage:
    """What every node offers, and what pods take of it. Pods may be known before their node."""

    def __init__(self) -> None:
        self._offers: dict[str, NodeOffer] = {}
        self._taken: dict[str, _Taken] = {}  # by node
        self._pods: dict[str, tuple[str, NodeDemand]] = {}  # node and demand, by the pod's uid

    def nodes(self) -> "list[_NodeUse]":
        """In the order of their names."""
        free = _Taken()
        return [
            _NodeUse(self._offers[name], self._taken.get(name, free))
            for name in sorted(self._offers)
        ]

    def offer(self, name: str, offer: NodeOffer | None) -> bool:
        """None: there is no such node any more. Whether that changed anything."""
        before = self._offers.get(name)
        if offer is None:
            self._offers.pop(name, None)
        else:
            self._offers[name] = offer
        return offer != before

    def put(self, uid: str, place: tuple[str, NodeDemand] | None) -> bool:
        """Where the pod is and what it takes there; None: it takes nothing. True: something may
        have become free."""
        before = self._pods.pop(uid, None)
        if before is not None:
            self._taken[before[0]].remove(uid, before[1])
            if not any(self._taken[before[0]].amounts.values()):
                del self._taken[before[0]]
        if place is not None:
            self._pods[uid] = place
            self._taken.setdefault(place[0], _Taken()).add(uid, place[1])
        return before is not None and before != place


class _NodeUse(NamedTuple):
    """What a node offers, and what is taken of it."""

    offer: NodeOffer
    taken: _Taken

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
        taken = [port for ports in self.taken.ports.values() for port in ports]
        if any(port.collides(other) for port in demand.host_ports for other in taken):
            return "node(s) didn't have free ports for the requested pod ports"
        for name, amount in demand.resources.items():
            if amount and self.taken.amounts[name] + amount > node.allocatable.get(name, 0):
                return "Too many pods" if name == "pods" else f"Insufficient {name}"
        return ""

    def free_share(self, demand: NodeDemand) -> float:
        """The share of CPU, memory and pods that would stay free, the smallest of the three."""
        return min(
            1 - (self.taken.amounts[name] + demand.resources.get(name, 0)) / most
            for name in ("cpu", "memory", "pods")
            if (most := self.offer.allocatable.get(name, 0))
        )


def _is_ours(pod: Obj) -> bool:
    """Whether this scheduler is to place the pod, which has no node yet."""
    spec = pod["spec"]
    return (
        spec.get("schedulerName", DEFAULT_SCHEDULER_NAME) == DEFAULT_SCHEDULER_NAME
        and "deletionTimestamp" not in pod["metadata"]
        and not spec.get("schedulingGates")
    )


def _tolerates_cordon(demand: NodeDemand) -> bool:
    return any(toleration.tolerates(_CORDON) for toleration in demand.tolerations)


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


def _order(pod: Obj) -> _Order:
    metadata = pod["metadata"]
    return -(pod["spec"].get("priority") or 0), metadata["creationTimestamp"], metadata["name"]


def _uid(pod: Obj) -> str:
    return str(pod["metadata"]["uid"])


def _name(pod: Obj) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
