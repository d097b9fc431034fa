"""CardWatch: looks once at every container with cards, and reports those that run without."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from gpupool.agent.light_pods import LightPods
from gpupool.agent.metrics import Metrics
from gpupool.agent.missing_cards import Started, can_tell, started, verdict
from gpupool.agent.pod_reports import PodReports
from gpupool.agent.settings import AgentSettings
from gpupool.contract.allocation import pod_allocation
from gpupool.core.ways import Ways
from kubeclient.objects import Obj

REASON = "CardDidNotGetIn"
# Containers whose processes cannot be told (no hostPID, an unknown runtime) are not looked for
# every five seconds for ever.
_MOST_TRIES = 12


class _Seen(NamedTuple):
    tries: int = 0
    has_card: bool | None = None  # None: not known yet


class CardWatch:
    def __init__(
        self,
        settings: AgentSettings,
        reports: PodReports,
        ways: Callable[[], Ways],
    ) -> None:
        """`ways`: as of now."""
        self._settings = settings
        self._reports = reports
        self._ways = ways
        self._seen: dict[str, _Seen] = {}  # by id of the container
        self._looked_by = Ways()  # the ways at the last look
        self._is_due = True  # something has changed since the last look, or was not finished then

    async def run(self, pods: LightPods, metrics: Metrics) -> None:
        """Until cancelled."""
        pods.on_change(self._pods_changed)
        await pods.wait_synced()
        own, mountinfo = self._settings.own_driver, self._settings.mountinfo
        while self._settings.pids is not None and can_tell(own, mountinfo):
            await asyncio.sleep(self._settings.audit_s)
            if self._is_due or self._ways() != self._looked_by:
                self._is_due = False
                await self.look(tuple(pods), metrics)

    def _pods_changed(self) -> None:
        self._is_due = True

    async def look(self, pods: Collection[Obj], metrics: Metrics) -> None:
        ways = self._looked_by = self._ways()
        by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
        running = {each.id: each for each in started(pods, ways)}
        self._seen = {id: seen for id, seen in self._seen.items() if id in running}
        for each in await self._judge([each for each in running.values() if self._is_open(each)]):
            self._report(each, by_uid[each.uid], ways)
        self._is_due |= any(map(self._is_open, running.values()))
        missing = [each for id, each in running.items() if self._lacks(id)]
        metrics.without_card = {_key(each, by_uid[each.uid]) for each in missing}
        if self._settings.evicts:
            self._is_due |= bool(missing)
            for pod in [by_uid[uid] for uid in {each.uid for each in missing}]:
                await self._reports.evict(pod)

    def _is_open(self, container: Started) -> bool:
        seen = self._seen.get(container.id, _Seen())
        return seen.has_card is None and seen.tries < _MOST_TRIES

    def _lacks(self, id: str) -> bool:
        return id in self._seen and self._seen[id].has_card is False

    async def _judge(self, containers: Iterable[Started]) -> list[Started]:
        """Those that have no card."""
        by_id = {each.id: each for each in containers}
        if not by_id or self._settings.pids is None:
            return []
        pids = await asyncio.to_thread(self._settings.pids, by_id.keys())
        for id in by_id:
            has_card = verdict(pids.get(id, ()), self._settings.mountinfo)
            self._seen[id] = _Seen(self._seen.get(id, _Seen()).tries + 1, has_card)
        return [each for id, each in by_id.items() if self._lacks(id)]

    def refused(self, pods: Iterable[Obj], metrics: Metrics, uid: str, words: str) -> None:
        """A container of this pod was not started, because its card is missing (`StartCheck`)."""
        of_it = [pod for pod in pods if pod["metadata"]["uid"] == uid]
        # The variable that promises a card is in the environment, where everybody can write it: a
        # pod without cards has only itself to tell.
        if of_it and not any(pod_allocation(pod).containers for pod in of_it):
            return
        metrics.starts_refused += 1
        # Its kubelet says so, too, but not to those who look at the node.
        for pod in of_it:
            self._reports.warn(pod, REASON, words)

    def _report(self, container: Started, pod: Obj, ways: Ways) -> None:
        words = (
            f"container {container.name} runs without the card that it was promised: none of its "
            f"processes has a file of the driver. Node {self._settings.node}, way {ways.words}. "
            "`gpupool doctor --canary` checks the node"
        )
        self._reports.warn(pod, REASON, words)


def _key(container: Started, pod: Obj) -> tuple[str, str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"], container.name
