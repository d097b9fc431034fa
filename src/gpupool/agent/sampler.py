"""Sampler: readings of the node's cards, taken when somebody asks for them.

The driver is asked for what each card does and for what each process holds; the cgroups of the
processes tell the containers. However many ask, the driver is read at most once in FRESH_S.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from gpupool.agent.owners import Owner, container_names
from gpupool.agent.settings import AgentSettings
from gpupool.core.readings import ContainerUse, NodeReadings
from gpupool.hardware.driver import Driver, Uses
from kubeclient.objects import Obj

FRESH_S = 1.0


class Sampler:
    def __init__(self, settings: AgentSettings, driver: Driver, pods: Iterable[Obj]) -> None:
        """`pods`: those of the node, as last received from the API server."""
        self._settings = settings
        self._driver = driver
        self._pods = pods
        self._turn = asyncio.Lock()
        self._last: NodeReadings | None = None
        self._taken_s = 0.0

    async def readings(self) -> NodeReadings:
        """Raises NoDriver, NotAnswering."""
        async with self._turn:
            # Not by the time of day, which may be set back.
            if self._last is None or time.monotonic() - self._taken_s >= FRESH_S:
                self._last = await self._sample()
                self._taken_s = time.monotonic()
            return self._last

    async def _sample(self) -> NodeReadings:
        cards = await self._driver.readings()
        uses = await self._driver.uses()
        settings = self._settings
        held = containers_by_card(uses, self._pods, settings.owner, settings.container)
        known = uses.read - uses.untold
        found = tuple(
            replace(card, containers=held.get(card.uuid, ())) if card.uuid in known else card
            for card in cards
        )
        return NodeReadings(settings.node, time.time(), found)


def containers_by_card(
    uses: Uses, pods: Iterable[Obj], owner: Owner, container: Owner
) -> dict[str, tuple[ContainerUse, ...]]:
    """By uuid of the card. Processes that belong to no pod are left out."""
    by_name = {
        name: pod for pod in pods for name in (pod["metadata"]["uid"], *container_names(pod))
    }
    held: Counter[tuple[str, str, str, str]] = Counter()
    for use in uses.programs:
        pod = by_name.get(owner(use.pid))
        if pod is not None:
            metadata = pod["metadata"]
            # Looked up among the containers of its own pod only.
            name = container_names(pod).get(container(use.pid), "")
            held[use.uuid, metadata["namespace"], metadata["name"], name] += use.used_mib
    found: dict[str, tuple[ContainerUse, ...]] = {}
    for (uuid, namespace, name, inside), used_mib in sorted(held.items()):
        use_of_one = ContainerUse(namespace, name, inside, used_mib)
        found[uuid] = (*found.get(uuid, ()), use_of_one)
    return found
