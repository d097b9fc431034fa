"""The collector: follows nodes and pods, asks the agents once a minute, and fills the store.

One collector for each store: the store's file is locked by its directory (a local cluster), or the
Deployment has one replica that is replaced only when the old one has ended (Recreate).
"""

import asyncio
import logging
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpupool.contract.names import AGENT_NAMESPACE
from gpupool.core.readings import CardReading
from gpupool.history.accounts import entries
from gpupool.history.facts import Held, Moment, NodeFacts, node_facts, pod_facts
from gpupool.history.store import Store
from gpupool.readings import Readings, read_nodes
from kubeclient.client import Kube
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import NODES, PODS

log = logging.getLogger(__name__)

EVERY_S = 60.0
# After a longer time than this nobody knows what happened in between: the machine slept, say.
LONGEST_S = 3 * EVERY_S


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    agents: str = AGENT_NAMESPACE  # the namespace of the agents
    every_s: float = EVERY_S
    clock: Callable[[], float] = time.time


class Watched:
    """The facts of all nodes and pods that have to do with cards, as the mirrors tell them."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        self._pods: dict[tuple[str, str], list[Held]] = {}

    def node(self, _old: Obj | None, new: Obj | None) -> None:
        gone = (_old or {}).get("metadata", {}).get("name", "")
        facts = None if new is None else node_facts(new)
        if new is None or facts is None:
            self.nodes.pop(gone if new is None else new["metadata"]["name"], None)
        else:
            self.nodes[new["metadata"]["name"]] = facts

    def pod(self, old: Obj | None, new: Obj | None) -> None:
        metadata = (new or old or {})["metadata"]
        key = (metadata["namespace"], metadata["name"])
        facts = [] if new is None else pod_facts(new)
        if facts:
            self._pods[key] = facts
        else:
            self._pods.pop(key, None)

    def held(self) -> list[Held]:
        """Containers that ask for cards and have not ended."""
        return [each for held in self._pods.values() for each in held if each.until_ms is None]

    def moment(self, at_s: float, read: Readings) -> Moment:
        return Moment(
            int(at_s * 1000),
            dict(self.nodes),
            {(each.uid, each.container): each for held in self._pods.values() for each in held},
            self._told(read),
            {name: each.taken_at_s for name, each in read.by_node.items()},
        )

    def _told(self, read: Readings) -> dict[str, CardReading]:
        """What agents tell of the cards of their own nodes, by uuid. An agent of a node that was
        taken over must not make pods of other nodes idle: a card that two nodes have is unknown."""
        owners = Counter(uuid for node in self.nodes.values() for uuid in node.cards)
        told = read.cards({name: frozenset(node.cards) for name, node in self.nodes.items()})
        return {uuid: card for uuid, card in told.items() if owners[uuid] == 1}


async def collect(
    kube: Kube,
    store: Store,
    settings: CollectorSettings,
    asks: Kube | None = None,
    beside: Callable[[Watched], Awaitable[None]] | None = None,
) -> None:
    """Runs until it is cancelled. `asks`: the client that asks the agents, if it is another one.
    `beside`: what else runs as long as this, and reads what is watched."""
    watched = Watched()
    mirrors = [Mirror(kube, NODES), Mirror(kube, PODS)]
    mirrors[0].on_change(watched.node)
    mirrors[1].on_change(watched.pod)
    tasks = [asyncio.create_task(mirror.run(), name="history-mirror") for mirror in mirrors]
    try:
        for mirror in mirrors:
            await mirror.wait_synced()
        await asyncio.gather(
            _follow(asks or kube, store, settings, watched),
            *([beside(watched)] if beside is not None else []),
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _follow(kube: Kube, store: Store, settings: CollectorSettings, watched: Watched) -> None:
    last = watched.moment(settings.clock(), Readings({}, {}))
    refused, unread = 0, ""
    while True:
        # At whole minutes, so that a sample is in one slot.
        now_s = settings.clock()
        await asyncio.sleep(settings.every_s - now_s % settings.every_s)
        nodes = frozenset(watched.nodes)
        # As long as there is time until the next sample: nobody waits for this one.
        read = await read_nodes(kube, nodes, settings.agents, limit_s=settings.every_s * 0.8)
        moment = watched.moment(settings.clock(), read)
        if 0 < moment.at_ms - last.at_ms <= LONGEST_S * 1000:
            await asyncio.to_thread(write, store, last, moment)
        problem = next(iter(read.problems.values()), "")
        if problem != unread:  # once, not every minute
            unread = problem
            fields = {"nodes": len(read.problems), "of": len(watched.nodes), "one": problem}
            log.warning(
                "what cards do is unknown" if problem else "all agents answer", extra=fields
            )
        if store.refused > refused:
            refused = store.refused
            log.warning("history has no place for more series", extra={"refused": refused})
        last = moment


def write(store: Store, before: Moment, after: Moment) -> None:
    """A minute that cannot be written is unknown; the next one may be."""
    try:
        store.add(before.at_ms, after.at_ms, entries(before, after))
    except (sqlite3.OperationalError, OSError) as error:
        log.warning("a minute of history cannot be written", extra={"error": str(error)})
