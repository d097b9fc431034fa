"""Draining a node: which pods have to go, and one task that evicts them as budgets allow.

The task belongs to the visitor: it acts with their client, and ends with their last session. It
does what `kubectl drain` does, and can be watched meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum

from gpupool.console.words import word
from gpupool.contract.names import REGION_VOLUME
from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound, Refused
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_MIRROR = "kubernetes.io/config.mirror"
_OVER = ("Succeeded", "Failed")


class Fate(StrEnum):
    """What a drain does with a pod."""

    GOES = "goes"
    STAYS = "stays"  # of a DaemonSet, or of the node itself: it would come back at once
    LOST = "lost"  # goes, and nobody makes it again
    LOSES_DATA = "loses data"  # goes, and what it has in an emptyDir goes with it


def fate_of(pod: Obj) -> Fate:
    metadata = pod["metadata"]
    if _MIRROR in (metadata.get("annotations") or {}):
        return Fate.STAYS
    owner = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), None)
    if owner is not None and owner.get("kind") == "DaemonSet":
        return Fate.STAYS
    # Ended or ending: there is nothing left to lose.
    if "deletionTimestamp" in metadata or (pod.get("status") or {}).get("phase") in _OVER:
        return Fate.GOES
    if owner is None:
        return Fate.LOST
    return Fate.LOSES_DATA if _has_scratch(pod) else Fate.GOES


def _has_scratch(pod: Obj) -> bool:
    """Admission gives each shared container an emptyDir too; nobody misses what is in it."""
    return any(
        "emptyDir" in volume and not str(volume.get("name")).startswith(REGION_VOLUME)
        for volume in pod["spec"].get("volumes") or ()
    )


class Phase(StrEnum):
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(slots=True)
class Drain:
    """What is known of one drain. `changed` is called after each change."""

    node: str
    uid: str  # of the node: another one of the same name is not meant
    changed: Callable[[], None]
    total: int = 0  # pods that had to go at the beginning
    left: tuple[tuple[str, str], ...] = ()  # namespace and name of those that are still there
    held: dict[tuple[str, str], str] = field(default_factory=dict)  # what the API server said
    phase: Phase = Phase.RUNNING
    why: str = ""  # it stopped or failed: a text of ours, or the API server's own
    is_removed: bool = False  # the node, after the drain, because that was asked for
    task: asyncio.Task[None] | None = None

    def ends(self, phase: Phase, why: str = "") -> None:
        self.phase, self.why = phase, why
        self.changed()


async def cordoned(kube: Kube, name: str) -> Obj:
    """Raises KubeError."""
    return await kube.patch(NODES.path(name=name), {"spec": {"unschedulable": True}})


async def pods_on(kube: Kube, node: str) -> list[Obj]:
    """Raises KubeError."""
    return (await kube.list(PODS, query={"fieldSelector": f"spec.nodeName={node}"})).items


async def run_drain(kube: Kube, drain: Drain, then: Callable[[], Awaitable[None]] | None) -> None:
    """Until no pod is left that has to go. `then` removes the node. Never raises KubeError."""
    try:
        while await _step(kube, drain):  # noqa: ASYNC110  # a budget tells nobody that it allows it
            await asyncio.sleep(_LOOK_EVERY_S)
        if then is not None and drain.phase is Phase.RUNNING:
            await then()
            drain.is_removed = True
    except KubeError as error:
        drain.ends(Phase.FAILED, str(error))
    except Exception:
        # Nobody waits for this task: without these words it would seem to run for ever.
        log.exception("drain failed", extra={"node": drain.node})
        drain.ends(Phase.FAILED, word("The console made a mistake"))
    if drain.phase is Phase.RUNNING:
        drain.ends(Phase.DONE)


async def _step(kube: Kube, drain: Drain) -> bool:
    """Whether there is more to do. Raises KubeError."""
    try:
        node = await kube.get(NODES, drain.node)
    except NotFound:
        drain.left = ()
        return False
    if node["metadata"]["uid"] != drain.uid:
        drain.ends(Phase.STOPPED, word("There is another node of this name now."))
        return False
    if not (node.get("spec") or {}).get("unschedulable"):
        drain.ends(Phase.STOPPED, word("Somebody has set the node schedulable again."))
        return False
    pods = [pod for pod in await pods_on(kube, drain.node) if fate_of(pod) is not Fate.STAYS]
    held = {}
    for pod in pods:
        if words := await _evicted(kube, pod):
            held[_name(pod)] = words
    _note(drain, tuple(sorted(map(_name, pods))), held)
    return bool(pods)


async def _evicted(kube: Kube, pod: Obj) -> str:
    """Why the pod stays for now; empty: it goes. Raises what would be the same for every pod."""
    if "deletionTimestamp" in pod["metadata"]:
        return ""
    try:
        await kube.evict(pod)
    except (NotFound, Conflict):
        return ""  # it is gone, and perhaps another one has its name: the next look tells
    except Refused as refused:
        if refused.code == 401:
            raise
        return _refusal(refused)
    return ""


def _refusal(refused: Refused) -> str:
    """With what is behind it: which disruption budget, and how many pods it wants."""
    causes = (refused.status.get("details") or {}).get("causes") or ()
    return " ".join([str(refused), *(str(each.get("message") or "") for each in causes)])


def _note(
    drain: Drain, left: tuple[tuple[str, str], ...], held: dict[tuple[str, str], str]
) -> None:
    if (left, held) == (drain.left, drain.held):
        return
    drain.left, drain.held = left, held
    drain.total = max(drain.total, len(left))
    drain.changed()


def _name(pod: Obj) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def drain_topic(node: str) -> str:
    """Under this name pages hear of it (`Watches.say`)."""
    return f"drain {node}"


_MOST = 50  # drains that are remembered; of those that run, none is forgotten


@dataclass(slots=True)
class Drains:
    """Of visitors with the same rights, by node."""

    _known: dict[str, Drain] = field(default_factory=dict)

    def of(self, node: str) -> Drain | None:
        return self._known.get(node)

    def is_full(self) -> bool:
        return sum(each.phase is Phase.RUNNING for each in self._known.values()) >= _MOST

    def begin(
        self, kube: Kube, drain: Drain, then: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Another one of the same node must have ended."""
        self._known.pop(drain.node, None)
        over = [name for name, each in self._known.items() if each.phase is not Phase.RUNNING]
        for name in over[: max(0, len(self._known) + 1 - _MOST)]:
            del self._known[name]
        self._known[drain.node] = drain
        name = f"console-drain-{drain.node}"
        drain.task = asyncio.create_task(run_drain(kube, drain, then), name=name)

    async def stop(self, node: str, why: str) -> None:
        drain = self._known.get(node)
        if drain is None or drain.phase is not Phase.RUNNING:
            return
        assert drain.task is not None
        drain.task.cancel()
        await asyncio.gather(drain.task, return_exceptions=True)
        drain.ends(Phase.STOPPED, why)

    async def end_all(self) -> None:
        for node in list(self._known):
            await self.stop(node, word("The visitor has signed out."))
