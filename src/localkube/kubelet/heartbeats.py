"""Heartbeats: renews the lease of every node, and posts its status, spread over time.

The first wait of a node is a fraction of the period that depends on its name. So thousands of nodes
that start at the same time do not renew their leases in the same second ever after.
"""

import datetime
import logging
import time
import zlib
from collections.abc import Callable, Mapping

from kubeclient.client import STRATEGIC_PATCH, Kube
from kubeclient.errors import AlreadyExists, KubeError, NotFound
from kubeclient.events import NORMAL, Recorder
from kubeclient.mirror import Mirror
from kubeclient.mirror_faults import Broke, unheard
from kubeclient.objects import Obj
from kubeclient.resources import LEASES, NODES
from kubeclient.times import stamp
from localkube.kubelet.devices.stock import Counts
from localkube.kubelet.node import LocalNode
from localkube.kubelet.settings import FleetSettings
from localkube.kubelet.timers import Timers
from localkube.work_queue import WorkQueue

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_DURATION_S = 40
_RETRY_S = 2.0
# With thousands of nodes, leases are renewed less often than the settings say: each renewal is a
# write to disk. _LONGEST_S stays well below the 40 s after which a node counts as unreachable.
_LEASES_PER_S = 100
_LONGEST_S = 20.0

_CONDITIONS = (
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_conditions(before: list[Obj], now: str) -> list[Obj]:
    """The kubelet's four conditions. lastTransitionTime changes only with the status."""
    known = {condition["type"]: condition for condition in before}
    made: list[Obj] = []
    for kind, status, reason, message in _CONDITIONS:
        found = known.get(kind)
        same = found is not None and found["status"] == status
        since = found.get("lastTransitionTime", now) if found is not None and same else now
        made.append(
            {
                "type": kind,
                "status": status,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
        )
    return made


def _shown(counts: Mapping[str, int]) -> dict[str, str]:
    return {resource: str(count) for resource, count in counts.items()}


class Heartbeats:
    def __init__(
        self,
        settings: FleetSettings,
        kube: Kube,
        mirror: Mirror,
        recorder: Recorder,
        counts: Callable[[str], Counts],
        broke: Broke = unheard,
    ) -> None:
        """`counts`: the numbers of devices of a node. `broke` is told of nodes that have no
        heartbeat because of what they are."""
        self._broke = broke
        self._broken: set[str] = set()
        self._settings = settings
        self._kube = kube
        self._mirror = mirror
        self._recorder = recorder
        self._counts = counts
        self._clock = time.time
        self._nodes: dict[str, LocalNode] = {}
        self._posted_at: dict[str, float] = {}
        self._work: WorkQueue[str] = WorkQueue()
        self.timers = Timers(self._clock, self._work.add)

    def add(self, node: LocalNode) -> None:
        self._nodes[node.name] = node
        self._work.add(node.name)

    def remove(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._posted_at.pop(name, None)
        if name in self._broken:
            self._tell(name, None)

    def post_again(self, name: str) -> None:
        """The next heartbeat posts the status, too: it has changed, or somebody overwrote it."""
        self._posted_at.pop(name, None)
        self._work.add(name)

    async def keep(self) -> None:
        """One worker; runs until cancelled."""
        while True:
            name = await self._work.take()
            node = self._nodes.get(name)
            try:
                if node is not None and not node.stopped:
                    await self._beat(node)
            except NotFound:
                pass  # the node is gone: the mirror will tell
            except KubeError as error:
                log.warning("no heartbeat", extra={"node": name, "error": str(error)})
                self.timers.add(self._clock() + _RETRY_S, name)
            except Exception as error:  # a bug about one node must not stop all nodes
                if name not in self._broken:
                    log.exception("no heartbeat", extra={"node": name})
                self._tell(name, error)
                self.timers.add(self._clock() + _RETRY_S, name)
            else:
                if name in self._broken:
                    self._tell(name, None)
            finally:
                self._work.done(name)

    def _tell(self, name: str, error: Exception | None) -> None:
        (self._broken.discard if error is None else self._broken.add)(name)
        obj = self._mirror.get(name) or {"metadata": {"name": name}}
        self._broke(obj | {"apiVersion": "v1", "kind": "Node"}, error)

    async def _beat(self, node: LocalNode) -> None:
        now = self._clock()
        first = node.name not in self._posted_at
        await self._renew(node, now)
        # Looked up after the renewal: `post_again` may have been called during it.
        if now - self._posted_at.get(node.name, 0.0) >= self._settings.status_s:
            await self._post(node, now)
        every_s = min(
            max(self._settings.lease_s, len(self._nodes) / _LEASES_PER_S),
            max(self._settings.lease_s, _LONGEST_S),
        )
        share = zlib.crc32(node.name.encode()) % 1000 / 1000 if first else 1.0
        self.timers.add(now + every_s * share, node.name)

    async def _renew(self, node: LocalNode, now: float) -> None:
        at = datetime.datetime.fromtimestamp(now, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: Obj = {
            "holderIdentity": node.name,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": at,
        }
        try:
            await self._kube.patch(LEASES.path(LEASE_NAMESPACE, node.name), {"spec": spec})
        except NotFound:
            await self._new_lease(node, spec)

    async def _new_lease(self, node: LocalNode, spec: Obj) -> None:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        lease = {
            "metadata": {
                "name": node.name,
                "namespace": LEASE_NAMESPACE,
                "ownerReferences": [owner],
            },
            "spec": spec,
        }
        try:
            await self._kube.create(LEASES, lease)
        except AlreadyExists:
            # Somebody else created it meanwhile: the next turn renews it.
            self._work.add(node.name)

    async def _post(self, node: LocalNode, now: float) -> None:
        obj = self._mirror.get(node.name)
        if obj is None:
            return
        # Before the status is read: a change from here on is not in this post, and its
        # `post_again` must remove this entry.
        self._posted_at[node.name] = now
        before = (obj.get("status") or {}).get("conditions") or []
        status: Obj = {"conditions": node_conditions(before, stamp(now))}
        counts = self._counts(node.name)
        if counts.capacity:
            status["capacity"] = _shown(counts.capacity)
            status["allocatable"] = _shown(counts.allocatable)
        change = {"status": status}
        path = NODES.path(name=node.name, subresource="status")
        try:
            await self._kube.patch(path, change, content_type=STRATEGIC_PATCH)
        except BaseException:
            self._posted_at.pop(node.name, None)
            raise
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in before):
            text = f"Node {node.name} status is now: NodeReady"
            self._recorder.event(obj, NORMAL, "NodeReady", text, host=node.name)
