"""What `gpupool top` shows, kept up to date: watches of nodes and pods, and readings of agents."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from gpupool.cli.top_rows import NodeCards, Now
from gpupool.contract.nodes import node_of
from gpupool.core.readings import CardReading, NodeReadings
from gpupool.history.facts import POOL_LABELS, Held, pod_facts
from gpupool.readings import Readings, read_nodes
from kubeclient.mirror import Mirror
from kubeclient.resources import NODES, PODS

if TYPE_CHECKING:
    from kubeclient.client import Kube
    from kubeclient.objects import Obj

_READ_S = 2.0  # between two rounds of readings; large clusters take longer themselves
_SHOWN_S = 60.0  # so long are readings shown of nodes that there was no time to ask again


class Feed:
    def __init__(self, kube: "Kube", agents: str) -> None:
        """`agents`: their namespace."""
        self._kube, self._agents = kube, agents
        self._nodes: dict[str, NodeCards] = {}
        self._pods: dict[tuple[str, str], list[Held]] = {}
        self._cards: dict[str, CardReading] = {}
        self._read_of: dict[str, tuple[NodeReadings, float]] = {}  # by node, and when
        self._now: Now | None = None  # None: something has changed since
        self.problem = ""  # why nothing is known of some nodes
        self.unread = 0  # of how many

    def now(self) -> Now:
        """The same value as before, if nothing has changed."""
        if self._now is None:
            held = [each for pod in self._pods.values() for each in pod]
            self._now = Now(dict(self._nodes), held, self._cards)
        return self._now

    async def read_once(self) -> None:
        """Without watches. Raises KubeError."""
        for node in (await self._kube.list(NODES)).items:
            self._node(None, node)
        for pod in (await self._kube.list(PODS)).items:
            self._pod(None, pod)
        await self._read()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Up to date within the block, once all is read. Raises KubeError."""
        for resource in (NODES, PODS):  # a mirror would ask again and again for what it may not see
            await self._kube.list(resource, query={"limit": "1"})
        mirrors = [Mirror(self._kube, NODES), Mirror(self._kube, PODS)]
        mirrors[0].on_change(self._node)
        mirrors[1].on_change(self._pod)
        tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors]
        try:
            for mirror in mirrors:
                await mirror.wait_synced()
            tasks.append(asyncio.create_task(self._keep_reading()))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_reading(self) -> None:
        while True:
            await self._read()
            await asyncio.sleep(_READ_S)

    async def _read(self) -> None:
        """Of thousands of nodes, a round asks only some: those first that were read longest ago."""
        order = sorted(self._nodes, key=lambda name: self._read_of.get(name, (None, 0.0))[1])
        read = await read_nodes(self._kube, order, self._agents)
        now_s = time.monotonic()
        kept = {
            name: was
            for name, was in self._read_of.items()
            if name in read.unasked and now_s - was[1] < _SHOWN_S
        }
        self._read_of = kept | {name: (node, now_s) for name, node in read.by_node.items()}
        known = Readings({name: node for name, (node, _) in self._read_of.items()}, {})
        self._now = None
        self._cards = known.cards(
            {name: {card.uuid for card in node.cards} for name, node in self._nodes.items()}
        )
        unknown = [why for name, why in read.problems.items() if name not in self._read_of]
        self.problem, self.unread = next(iter(unknown), ""), len(unknown)

    def _node(self, old: "Obj | None", new: "Obj | None") -> None:
        self._now = None
        name = (new or old or {})["metadata"]["name"]
        found = None if new is None else node_of(new)
        if found is None or found.inventory is None or not found.inventory.cards:
            self._nodes.pop(name, None)
            return
        pool = next((found.labels[key] for key in POOL_LABELS if found.labels.get(key)), "")
        self._nodes[name] = NodeCards(pool, found.inventory.cards)

    def _pod(self, old: "Obj | None", new: "Obj | None") -> None:
        self._now = None
        metadata = (new or old or {})["metadata"]
        key = (metadata["namespace"], metadata["name"])
        facts = [] if new is None else pod_facts(new)
        holds = [each for each in facts if each.shares and each.until_ms is None]
        if holds:
            self._pods[key] = holds
        else:
            self._pods.pop(key, None)
