"""Sampler: asks the driver what the node's cards do, and what each container does with them.

It samples every few seconds while pods have cards, because the time of the last kernel and the peak
of memory come from many samples; and when somebody asks. However many ask, the driver is read at
most once in FRESH_S.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

from gpupool.agent.settings import AgentSettings
from gpupool.agent.usage import (
    KnownPod,
    Part,
    Sample,
    Track,
    Work,
    container_uses,
    known_pod,
    next_tracks,
    parts_given,
    work_of_parts,
)
from gpupool.core.gpu import Inventory
from gpupool.core.readings import NodeReadings
from gpupool.hardware.driver import Driver, NoDriver
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj

FRESH_S = 1.0


class Sampler:
    def __init__(
        self,
        settings: AgentSettings,
        driver: Driver,
        inventory: Callable[[], Inventory],
    ) -> None:
        self._settings = settings
        self._driver = driver
        self._pods: dict[str, KnownPod] = {}  # those of the node, by uid
        self._inventory = inventory
        self._turn = asyncio.Lock()
        self._last: NodeReadings | None = None
        self._taken_s = 0.0
        self._since_us = 0  # time of day of the last sample
        self._tracks: dict[Part, Track] = {}

    def pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None:
            self._pods.pop(old["metadata"]["uid"], None)
        if new is not None:
            self._pods[new["metadata"]["uid"]] = known_pod(new)

    async def run(self, pods: Mirror) -> None:
        """Until cancelled. `pods`: of the node."""
        pods.on_change(self.pod_changed)
        while True:
            await asyncio.sleep(self._settings.sample_s)
            if any(pod.gpus for pod in self._pods.values()):
                with contextlib.suppress(NoDriver):
                    await self.readings()

    async def readings(self) -> NodeReadings:
        """Raises NoDriver, NotAnswering."""
        async with self._turn:
            # Not by the time of day, which may be set back.
            if self._last is None or time.monotonic() - self._taken_s >= FRESH_S:
                self._last = await self._read()
                self._taken_s = time.monotonic()
            return self._last

    async def _read(self) -> NodeReadings:
        day_us = time.time_ns() // 1000
        cards = await self._driver.readings()
        uses = await self._driver.uses()
        # If the clock was set back, nothing would be newer than the last sample.
        loads = await self._driver.loads(min(self._since_us, day_us))
        self._since_us = day_us
        sample = Sample(cards, uses, loads, time.monotonic(), day_us / 1e6)
        return self._told(sample, dict(self._pods))

    def _told(self, sample: Sample, pods: dict[str, KnownPod]) -> NodeReadings:
        settings = self._settings
        given = parts_given(pods.values(), self._inventory())
        done = work_of_parts(sample, pods.values(), given, settings.owner, settings.container)
        known = sample.uses.read - sample.uses.untold
        work: dict[Part, Work | None] = {
            part: done.get(part, Work()) if part.uuid in known else None
            for part in {**given, **done}
        }
        self._tracks = next_tracks(self._tracks, sample, work)
        cards = (
            replace(card, containers=container_uses(card, sample, pods, given, work, self._tracks))
            for card in sample.cards
        )
        return NodeReadings(settings.node, sample.day_s, tuple(cards))
