"""ReadCards: what cards do now, for pages that do not wait for slow agents.

A page waits a moment for the agents. What has not come by then is asked further in the background,
and the pages that wanted it are made again when it is there (`Watches.say`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gpupool.contract.names import AGENT_NAMESPACE
from gpupool.core.readings import CardReading
from gpupool.readings import Readings, read_nodes
from kubeclient.client import Kube

READINGS = "readings"  # the topic of pages that show them
MOST_NODES_READ = 64  # of one page: each is a connection through the API server
_WITHIN_S = 0.5  # a page waits so long
_GOOD_FOR_S = 4.0
_SHOWN_FOR_S = 30.0  # while newer ones are on their way; then they are unknown

Nodes = frozenset[str]


@dataclass(slots=True)
class ReadCards:
    kube: Kube
    clock: Callable[[], float]
    changed: Callable[[str], None]  # called with READINGS when readings have come late
    agents: str = AGENT_NAMESPACE  # their namespace
    _known: dict[Nodes, tuple[Readings, float]] = field(default_factory=dict)  # and when
    _asking: dict[Nodes, asyncio.Task[None]] = field(default_factory=dict)

    async def of(self, nodes: Nodes) -> dict[str, CardReading]:
        """By uuid; without those whose agent does not answer (in time), or may not be asked by the
        visitor. Never more than the first few dozen nodes."""
        asked = frozenset(sorted(nodes)[:MOST_NODES_READ])
        now = self.clock()
        self._known = {k: v for k, v in self._known.items() if v[1] + _SHOWN_FOR_S > now}
        if asked and (asked not in self._known or self._known[asked][1] + _GOOD_FOR_S < now):
            await self._ask(asked)
        found = self._known.get(asked)
        return {} if found is None else found[0].cards()

    async def _ask(self, asked: Nodes) -> None:
        task = self._asking.get(asked)
        if task is None:
            task = self._asking[asked] = asyncio.create_task(self._read(asked), name="readings")
        await asyncio.wait((task,), timeout=_WITHIN_S)

    async def _read(self, asked: Nodes) -> None:
        began = self.clock()
        try:
            self._known[asked] = (await read_nodes(self.kube, asked, self.agents), self.clock())
        finally:
            del self._asking[asked]
        if self.clock() - began > _WITHIN_S:
            self.changed(READINGS)

    async def end(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
