"""Auditor: checks every few seconds whether pods keep to their shares; reports or evicts them."""

import asyncio
import time
from collections.abc import Iterable

from gpupool.agent.audit import Lasting, Overuse, audited, overuses
from gpupool.agent.covered import covered_pods
from gpupool.agent.light_pods import LightPods
from gpupool.agent.metrics import Metrics
from gpupool.agent.pod_reports import PodReports
from gpupool.agent.settings import AgentSettings
from gpupool.hardware.driver import NOTHING_READ, Driver, NoDriver, ProgramUse, Uses
from kubeclient.objects import Obj

REASON = "GpuMemoryOveruse"
COVERED = "LimiterCovered"


class Auditor:
    def __init__(
        self,
        settings: AgentSettings,
        driver: Driver,
        reports: PodReports,
    ) -> None:
        self._settings = settings
        self._driver = driver
        self._reports = reports
        self._lasting = Lasting()
        self._reported: set[tuple[str, str]] = set()  # uid of the pod and uuid of the card
        self._covered: set[str] = set()  # uids of pods that were reported

    async def run(self, pods: LightPods, metrics: Metrics) -> None:
        """Until cancelled."""
        await pods.wait_synced()
        while True:
            await asyncio.sleep(self._settings.audit_s)
            shared = audited(pods)
            by_uid = {pod["metadata"]["uid"]: pod for pod in shared}
            uses = await self._uses() if shared else NOTHING_READ
            self.report_covered(shared, uses.programs)
            found = overuses(
                shared,
                uses.programs,
                self._settings.owner,
                counts_contexts=metrics.context_mib is not None,
            )
            lasting = self._lasting.of(found, uses.read, by_uid, time.monotonic())
            metrics.overuses = {_key(each, by_uid[each.uid]): each.used_mib for each in lasting}
            for each in lasting:
                await self._act(each, by_uid[each.uid], metrics)
            # Overuse that has ended is forgotten, so that it is reported again if it comes back.
            self._reported = {over for over in self._reported if over in self._lasting}

    def report_covered(self, pods: Iterable[Obj], uses: Iterable[ProgramUse]) -> None:
        """Reports each pod in which something is mounted over the limiter, once. Whether it takes
        more than its share, `overuses` says."""
        by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
        found = covered_pods(by_uid.values(), uses, self._settings.owner, self._settings.mountinfo)
        for uid in found.keys() - self._covered:
            words = (
                "its program runs without its limit: something else is mounted over "
                f"{found[uid]} in its container"
            )
            self._reports.warn(by_uid[uid], COVERED, words)
        self._covered = (self._covered | found.keys()) & by_uid.keys()

    async def _uses(self) -> Uses:
        try:
            return await self._driver.uses()
        # Without a reading nobody is accused, and nothing that was seen is forgotten.
        except NoDriver:
            return NOTHING_READ

    async def _act(self, over: Overuse, pod: Obj, metrics: Metrics) -> None:
        if (over.uid, over.uuid) not in self._reported:
            self._reported.add((over.uid, over.uuid))
            metrics.overuses_begun += 1
            self._reports.warn(pod, REASON, over.words)
        if self._settings.evicts:
            await self._reports.evict(pod)


def _key(over: Overuse, pod: Obj) -> tuple[str, str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"], over.uuid
