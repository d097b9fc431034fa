"""Pods: every pod of every node of the fleet, kept as its object asks.

A change of the pod's object, a change of a container, or a timer puts the pod's uid into the queue.
A worker takes it, starts or stops containers, and writes the status if that has changed. There is
no task per pod: a fleet may have tens of thousands of them."""

import logging
import os
from collections.abc import Callable, Iterator

import orjson

from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.mirror import Key
from kubeclient.mirror_faults import Broke, Faults, unheard
from kubeclient.objects import Obj, kept_json
from kubeclient.placement import host_ports
from kubeclient.resources import PODS
from localkube.kubelet.devices.all_devices import Devices
from localkube.kubelet.devices.node_devices import NotYet
from localkube.kubelet.lifecycle import Plan, begin, goodbye_at, plan
from localkube.kubelet.node import LocalNode, port_refusal, refusal
from localkube.kubelet.notices import Notices, crash_loop, named
from localkube.kubelet.pod_record import add_ephemeral, pod_record
from localkube.kubelet.pod_status import EVICTED, FAILED, SUCCEEDED, is_shown, pod_status
from localkube.kubelet.runtime import Runtime, is_settled
from localkube.kubelet.settings import TIMER, FleetSettings
from localkube.kubelet.state import Pod, Problem, Stop, is_over
from localkube.kubelet.timers import Timers
from localkube.work_queue import WorkQueue

log = logging.getLogger(__name__)

_RETRY_S = 1.0
_SAY_AGAIN_S = 1.0  # so that two that disagree do not write as fast as they can
_RETRY_BROKEN_S = 10.0
_DEFAULT_GRACE_S = 30
_UNEXPECTED = "UnexpectedAdmissionError"
_DEADLINE = Problem(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


class Pods:
    def __init__(
        self,
        settings: FleetSettings,
        kube: Kube,
        notices: Notices,
        devices: Devices,
        runtime_of: Callable[[Obj, LocalNode], str],
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self.broke: Broke = unheard  # told of pods that cannot be handled
        self._faults = Faults(PODS)
        self._kube = kube
        self._notices = notices
        self._devices = devices
        self.runtimes: dict[str, Runtime] = {}  # set once they are made
        self._runtime_of = runtime_of
        self._clock = clock
        self._nodes: dict[str, LocalNode] = {}
        self._pods: dict[str, Pod] = {}
        # The objects as JSON. Pods of the process runtime keep theirs, for volumes that show it;
        # pods of the timer runtime only while something is to be done, because they may be very
        # many.
        self._objects: dict[str, bytes] = {}
        # Pods on nodes that are not ours, or not yet: the name of the node, and the pod's key.
        self._strays: dict[str, tuple[str, Key]] = {}
        self._evictions: dict[str, str] = {}  # requested and not begun yet: the reason
        self._waiting: set[str] = set()  # for a device plugin, with an event about it
        self._work: WorkQueue[str] = WorkQueue()
        self.timers = Timers(clock, self._work.add)

    def get(self, uid: str) -> Pod | None:
        return self._pods.get(uid)

    def __iter__(self) -> Iterator[Pod]:
        return iter(list(self._pods.values()))

    async def object_of(self, pod: Pod) -> Obj | None:
        """At least as new as our last write of its status, so that the next write does not
        conflict. None if the pod is gone."""
        raw = self._objects.get(pod.uid)
        if raw is not None:
            obj: Obj = orjson.loads(raw)
            if int(obj["metadata"]["resourceVersion"]) >= pod.version:
                return obj
        try:
            obj = await self._kube.get(PODS, pod.name, pod.namespace)
        except NotFound:
            return None
        return obj if obj["metadata"]["uid"] == pod.uid else None

    def look_at(self, uid: str) -> None:
        """A container of the pod has changed."""
        self._work.add(uid)

    def evict(self, uid: str, why: str) -> None:
        """The pod exceeds a limit."""
        self._evictions[uid] = why
        self._work.add(uid)

    def add_node(self, node: LocalNode) -> None:
        self._nodes[node.name] = node
        for uid, (name, _) in self._strays.items():
            if name == node.name:
                self._work.add(uid)

    def remove_node(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        for uid in list(node.pods) if node is not None else ():
            pod = self._pods.pop(uid)
            self._objects.pop(uid, None)
            self.runtimes[pod.runtime].remove(pod)
            self._strays[uid] = (name, pod.key)

    def resume_node(self, name: str) -> None:
        for uid in self._nodes[name].pods:
            self._work.add(uid)

    def seen(self, obj: Obj) -> None:
        metadata = obj["metadata"]
        uid = metadata["uid"]
        pod = self._pods.get(uid)
        if pod is None:
            self._discover(obj)
            return
        # Our own status writes come back as events. They leave the generation, and need no work.
        matters = pod.generation != metadata.get("generation", 0)
        if matters or pod.runtime != TIMER or "deletionTimestamp" in metadata:
            self._objects[uid] = kept_json(obj)
            self.runtimes[pod.runtime].seen(pod, obj)
        if matters or "deletionTimestamp" in metadata:
            self._work.add(uid)
        elif pod.counted and not is_shown(pod, obj):
            # As a real kubelet: the node controller takes pods of slow nodes for not ready.
            self.timers.add(self._clock() + _SAY_AGAIN_S, uid)

    def gone(self, uid: str) -> None:
        self._forget(uid)

    def known(self) -> set[str]:
        return self._pods.keys() | self._strays.keys()

    async def keep(self) -> None:
        """One worker; runs until cancelled."""
        while True:
            uid = await self._work.take()
            try:
                await self._sync(uid)
            except NotFound:
                pass  # the pod is gone: the feed will tell
            except KubeError as error:
                log.warning("pod not written", extra={"uid": uid, "error": str(error)})
                self.timers.add(self._clock() + _RETRY_S, uid)
            except Exception as error:  # noqa: BLE001  # one pod must not stop all nodes
                self._faults.add(*named(uid, self._pods), "sync", error, self.broke)
                self.timers.add(self._clock() + _RETRY_BROKEN_S, uid)
            else:
                if self._faults:
                    self._faults.remove(*named(uid, self._pods), "sync")
            finally:
                self._work.done(uid)

    def _discover(self, obj: Obj) -> None:
        metadata, name = obj["metadata"], obj["spec"]["nodeName"]
        uid = metadata["uid"]
        node = self._nodes.get(name)
        if node is None:
            self._strays[uid] = (name, (metadata["namespace"], metadata["name"]))
            return
        now = self._clock()
        pod = pod_record(obj, self._runtime_of(obj, node), now)
        self._pods[uid] = pod
        node.pods.add(uid)
        over = (obj.get("status") or {}).get("phase") in (SUCCEEDED, FAILED)
        if over:
            pod.counted = False
            self._devices.release(name, uid)
        else:
            self._admit(pod, obj, node, now)
        idle = over or (pod.runtime == TIMER and is_settled(obj, self._settings.names))
        if not idle or "deletionTimestamp" in metadata:
            self._objects[uid] = kept_json(obj)
            self._work.add(uid)

    async def _find(self, uid: str) -> None:
        """Reads a pod that was bound to a node before the node was ours."""
        name, key = self._strays.get(uid, ("", ("", "")))
        if name in self._nodes:
            del self._strays[uid]
            obj = await self._kube.get(PODS, key[1], key[0])
            if obj["metadata"]["uid"] == uid:
                self.seen(obj)

    def _admit(self, pod: Pod, obj: Obj, node: LocalNode, now: float) -> None:
        # A pod from before a restart was admitted then. It is not refused now, even if the node has
        # become smaller meanwhile.
        known = bool((obj.get("status") or {}).get("startTime"))
        # Devices are counted by their plugins, in `_give_devices`.
        counted = {
            name: amount
            for name, amount in pod.requests.items()
            if not self._devices.manages(node.name, name)
        }
        ports = tuple(host_ports(obj["spec"]))
        no = None if known else refusal(node, counted) or port_refusal(node, ports)
        if no is not None:
            pod.counted = False
            self._reject(pod, obj, no)
            return
        pod.admitted = counted.keys() == pod.requests.keys()
        node.take(pod.requests)
        if ports:
            node.host_ports[pod.uid] = ports
        if obj["spec"].get("hostNetwork"):
            pod.ip = node.ip
        elif pod.ip:
            node.addresses.keep(pod.ip)
        else:
            pod.ip = node.addresses.take()
        if known:
            self.runtimes[pod.runtime].adopt(pod, obj, now)

    def _reject(self, pod: Pod, obj: Obj, no: Problem) -> None:
        pod.rejected = Problem(no.reason, f"Pod was rejected: {no.message}")
        self._notices.warn(pod, obj, no.reason, no.message)

    async def _give_devices(self, pod: Pod, obj: Obj, node: LocalNode, now: float) -> None:
        """The second part of admission, which calls device plugins and may take time."""
        try:
            words = await self._devices.admit(node.name, pod.uid, obj)
        except NotYet:
            if pod.uid not in self._waiting:
                self._waiting.add(pod.uid)
                text = "Waiting for the device plugin of this node to register again"
                self._notices.warn(pod, obj, "DevicePluginAway", text)
            self.timers.add(now + _RETRY_S, pod.uid)
            return
        self._waiting.discard(pod.uid)
        pod.admitted = True
        if pod.uid not in self._pods:
            self._devices.release(node.name, pod.uid)  # the pod was deleted meanwhile
        elif words is not None:
            self._uncount(pod, node)
            self._reject(pod, obj, Problem(_UNEXPECTED, words))

    def _forget(self, uid: str) -> None:
        self._objects.pop(uid, None)
        self._strays.pop(uid, None)
        self._waiting.discard(uid)
        self._evictions.pop(uid, None)
        if self._faults:
            self._faults.forget(*named(uid, self._pods))
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        self.runtimes[pod.runtime].remove(pod)
        node = self._nodes.get(pod.node)
        if node is not None:
            node.pods.discard(uid)
            self._uncount(pod, node)

    def _uncount(self, pod: Pod, node: LocalNode) -> None:
        """Frees the pod's resources and its address for others."""
        if pod.counted:
            pod.counted = False
            node.give_back(pod.requests)
            node.host_ports.pop(pod.uid, None)
            node.addresses.give_back(pod.ip)
            self._devices.release(node.name, pod.uid)

    async def _sync(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is None:
            await self._find(uid)
            return
        node = self._nodes[pod.node]
        if node.stopped or pod.released:
            return
        obj = await self.object_of(pod)
        if obj is None:
            return  # the pod is gone: the feed will tell
        now = self._clock()
        self._note(pod, obj, now)
        if not pod.admitted and pod.stop is None:
            await self._give_devices(pod, obj, node, now)
            if not pod.admitted:
                return
        todo = self._step(pod, obj, now)
        deleted = "deletionTimestamp" in obj["metadata"]
        if todo.look_at is not None:
            self.timers.add(todo.look_at, uid)
        if pod.runtime == TIMER:
            self._objects.pop(uid, None)
        if not (deleted and todo.over and pod.runtime == TIMER):
            await self._write(pod, obj, node, now)
        if deleted and todo.over:
            self._uncount(pod, node)
            await self._release(pod, now)

    def _note(self, pod: Pod, obj: Obj, now: float) -> None:
        """Takes over what has changed in the object: ephemeral containers, deletion, deadline."""
        metadata, spec = obj["metadata"], obj["spec"]
        if pod.generation != metadata.get("generation", 0):
            pod.generation = metadata["generation"]
            add_ephemeral(pod, spec)
        if "deletionTimestamp" in metadata:
            grace_s = float(metadata.get("deletionGracePeriodSeconds") or 0)
            self._end(pod, obj, Stop(now, grace_s, pod.stop.verdict if pod.stop else None), now)
        why = self._evictions.pop(pod.uid, None)
        if why is not None and pod.stop is None:
            self._notices.warn(pod, obj, EVICTED, why)
            self._end(pod, obj, Stop(now, 0.0, Problem(EVICTED, why)), now)
        deadline_s = spec.get("activeDeadlineSeconds")
        if deadline_s is not None and pod.stop is None and pod.counted:
            if now >= pod.start_time + deadline_s:
                grace_s = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S)
                self._notices.note(pod, obj, _DEADLINE.reason, _DEADLINE.message)
                self._end(pod, obj, Stop(now, grace_s, _DEADLINE), now)
            else:
                self.timers.add(pod.start_time + deadline_s, pod.uid)

    def _end(self, pod: Pod, obj: Obj, stop: Stop, now: float) -> None:
        """Stops the pod; or shortens its grace period, if it is stopping already. A container may
        be stopping for a reason of its own (a probe), with a longer grace period."""
        if pod.stop is not None:
            until = pod.stop.began_at + pod.stop.grace_s
            if stop.began_at + stop.grace_s >= until:
                return
        pod.stop = stop
        for index, container in enumerate(pod.containers):
            if container.stopping:
                self.runtimes[pod.runtime].stop(pod, index, obj, stop.grace_s, now)

    def _step(self, pod: Pod, obj: Obj, now: float) -> Plan:
        """Starts and stops containers until there is nothing more to do at once."""
        runtime = self.runtimes[pod.runtime]
        while True:
            again = runtime.look(pod, obj, now)
            todo = plan(pod, now, self._settings.backoff)
            if again is not None:
                todo.wait_until(again)
            for index in todo.stop:
                pod.containers[index].stopping = True
                runtime.stop(pod, index, obj, _grace_s(pod, index, obj, now), now)
            for index in todo.start:
                begin(pod.containers[index], os.urandom(32).hex(), now, self._settings.backoff)
                runtime.start(pod, index, obj, now)
            if not todo.start and not todo.stop:
                break
        for index in todo.backing_off:
            container = pod.containers[index]
            if container.problem is None:
                container.problem = crash_loop(pod, container)
                self._notices.back_off(pod, obj, container)
        return todo

    async def _write(self, pod: Pod, obj: Obj, node: LocalNode, now: float) -> None:
        status = pod_status(pod, obj, node.ip, now)
        if status["phase"] in (SUCCEEDED, FAILED) and all(is_over(c) for c in pod.containers):
            self._uncount(pod, node)
        if status == obj.get("status"):
            return
        version = obj["metadata"]["resourceVersion"]
        change = {"metadata": {"uid": pod.uid, "resourceVersion": version}, "status": status}
        try:
            written = await self._kube.patch(PODS.path(pod.namespace, pod.name, "status"), change)
        except Conflict:  # somebody else has written: read the object again, and retry
            pod.version = int(version) + 1  # makes `object_of` read from the API
            self._work.add(pod.uid)
        else:
            pod.version = int(written["metadata"]["resourceVersion"])

    async def _release(self, pod: Pod, now: float) -> None:
        if now < goodbye_at(pod):
            self.timers.add(goodbye_at(pod), pod.uid)
            return
        pod.released = True
        # By uid, because a new pod may have the name by now.
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        try:
            await self._kube.delete(PODS, pod.name, pod.namespace, options=options)
        except (NotFound, Conflict):
            return
        except KubeError:
            pod.released = False
            raise


def _grace_s(pod: Pod, index: int, obj: Obj, now: float) -> float:
    if pod.stop is not None:
        return max(0.0, pod.stop.began_at + pod.stop.grace_s - now)
    own = pod.containers[index].grace_s
    if own is not None:
        return float(own)
    return float(obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S))
