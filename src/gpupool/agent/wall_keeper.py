"""WallKeeper: keeps the driver's memory limits in force, and knows which wall holds each pod."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping

from gpupool.agent.audit import audited
from gpupool.agent.light_pods import LightPods
from gpupool.agent.metrics import Metrics
from gpupool.agent.owners import container_names
from gpupool.agent.wall_plan import Shares, walls
from gpupool.agent.walls import Sweep, Walls
from gpupool.contract.allocation import pod_allocation
from gpupool.contract.names import GROUP_LIMITS
from gpupool.core.gpu import Inventory, Wall, weakest
from kubeclient.events import WARNING, Recorder
from kubeclient.objects import Obj

log = logging.getLogger(__name__)

REASON = "NotHeldByDriver"
_SWEEP_S = 5.0  # also without a change of a pod: containers start without one
_PROBE_AGAIN_S = 300.0


class WallKeeper:
    def __init__(self, node: str, made: Walls | None, recorder: Recorder) -> None:
        """`made`: None where limits of the driver are not used."""
        self._node = node
        self._walls = made
        self._recorder = recorder
        self._works = False
        self._probe_s = 0.0  # when the driver is asked again whether it has limits
        self._last = Sweep({}, {}, {})
        # Limits that the last sweep found in force, by uid of the pod and name of the container.
        self._confirmed: dict[str, dict[str, str]] = {}
        self._reported: set[str] = set()
        self._changed = asyncio.Event()
        self.others: tuple[tuple[str, Wall], ...] = ()

    def look_again(self) -> None:
        self._changed.set()

    def wall(self, isolates: bool | None) -> Wall | None:
        """What holds shares on this node, if it isolates them."""
        if not isolates:
            return None if isolates is None else Wall.NONE
        return Wall.DRIVER if self._works else Wall.LIMITER

    async def hold(self, container: str, shares: Shares) -> None:
        """Before the program of a container starts: does nothing where the driver has no limits.
        Raises WallRefused."""
        if self._walls is not None and self._works:
            await asyncio.to_thread(self._walls.hold, container, shares)

    async def release(self, container: str, shares: Shares) -> None:
        """When the container has ended."""
        if self._walls is not None and self._works:
            await asyncio.to_thread(self._walls.release, container, list(shares))

    async def run(
        self,
        pods: LightPods,
        inventory: Callable[[], Inventory],
        metrics: Metrics,
        tell: Callable[[], None],
    ) -> None:
        """Until cancelled. `tell` is called when what this knows has changed."""
        pods.on_change(self._changed.set)
        await pods.wait_synced()
        swept: Inventory | None = None
        while True:
            known = inventory()
            if known != swept or self._is_due():
                self._changed.clear()
                before = self._works, self.others
                seen = list(pods)
                await self._sweep(seen, known)
                metrics.walls = _by_wall(seen, known)
                swept = known
                if (self._works, self.others) != before:
                    tell()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SWEEP_S):
                    await self._changed.wait()

    def _is_due(self) -> bool:
        """Where the driver holds no limits, a sweep finds nothing that pods do not tell."""
        asks = self._walls is not None and time.monotonic() >= self._probe_s
        return self._works or asks or self._changed.is_set()

    async def _sweep(self, pods: list[Obj], inventory: Inventory) -> None:
        uuids = [card.uuid for card in inventory.cards if card.takes_pods]
        if self._walls is not None and uuids:
            now_s = time.monotonic()
            if not self._works and now_s >= self._probe_s:
                self._probe_s = now_s + _PROBE_AGAIN_S
                self._works = await asyncio.to_thread(self._walls.work, uuids[0])
            if self._works:
                try:
                    self._last = await asyncio.to_thread(self._walls.sweep, pods, uuids, now_s)
                except OSError as error:
                    log.warning("cgroups cannot be listed", extra={"error": str(error)})
                    self._last, self._works = Sweep({}, {}, {}), False
        self._confirmed = {
            pod["metadata"]["uid"]: _texts(pod, self._last.held.get(pod["metadata"]["uid"], set()))
            for pod in pods
        }
        wall = self.wall(inventory.isolates) or Wall.NONE
        self.others = tuple(sorted(walls(pods, self._last.held, wall).items()))
        self._report(pods)

    def _report(self, pods: Iterable[Obj]) -> None:
        """Says once of each pod that the driver should hold it, and does not."""
        problems = self._last.problems if self._works else {}
        for pod in pods:
            metadata = pod["metadata"]
            why = problems.get(metadata["uid"])
            if why and metadata["uid"] not in self._reported:
                words = f"the driver does not hold it to its share, only the limiter does: {why}"
                log.warning("pod without its wall", extra={"pod": metadata["name"], "error": why})
                about = {"apiVersion": "v1", "kind": "Pod", **pod}
                self._recorder.event(about, WARNING, REASON, words, host=self._node)
        self._reported = set(problems)

    def agrees(self, pod: Obj) -> bool:
        """Whether the driver is not what keeps a lowered limit from being in force: it holds the
        pod's containers to what their annotations say, or does not hold them at all."""
        uid = pod["metadata"]["uid"]
        if not self._works or uid in self._last.problems:
            return True
        annotations = pod["metadata"].get("annotations") or {}
        return all(
            annotations.get(f"{GROUP_LIMITS}/{name}") == text
            for name, text in self._confirmed.get(uid, {}).items()
        )

    def used_mib(self, pod: Obj, container: str) -> Mapping[str, int]:
        """What the driver counts for the container, by card; empty: it does not hold it."""
        by_id = self._last.used.get(pod["metadata"]["uid"], {})
        for id, name in container_names(pod).items():
            if name == container and id in by_id:
                return by_id[id]
        return {}


def _texts(pod: Obj, held: set[str]) -> dict[str, str]:
    annotations = pod["metadata"].get("annotations") or {}
    names = (name for id, name in container_names(pod).items() if id in held)
    return {name: annotations.get(f"{GROUP_LIMITS}/{name}", "") for name in names}


def _by_wall(pods: Iterable[Obj], inventory: Inventory) -> dict[tuple[str, str, str], int]:
    """By namespace and name of the pod, and wall: 1. Of pods that share cards."""
    found = {}
    for pod in audited(pods):
        metadata = pod["metadata"]
        held = (inventory.wall_of(metadata["uid"], each) for each in pod_allocation(pod).containers)
        wall = weakest(each for each in held if each is not None)
        if wall is not None:
            found[metadata["namespace"], metadata["name"], str(wall)] = 1
    return found
