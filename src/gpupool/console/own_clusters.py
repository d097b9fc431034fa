"""OwnClusters: the clusters of the console's owner, each with a client and a sight of its own."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from gpupool.console.cluster_jobs import Jobs
from gpupool.console.gpus import Totals
from gpupool.console.parts.missing import NoSuchThing
from gpupool.console.platform import RUNNING, Known, OwnMachine, Platform
from gpupool.console.rights import Denied, SignedOut
from gpupool.console.rows.nodes import node_row
from gpupool.console.sessions import Session
from gpupool.console.sight import Sights
from gpupool.console.watches import NotRead, What
from kubeclient.errors import KubeError
from kubeclient.resources import NODES

TOPIC = "clusters"
_KNOWN_FOR_S = 1.0
_PATIENCE_S = 3.0  # for the figures of one cluster


@dataclass(frozen=True, slots=True)
class Figures:
    version: str
    nodes: int
    ready: int
    gpus: Totals


@dataclass(slots=True)
class OwnClusters:
    platform: Platform
    home: str  # the key of the cluster with which the console was started
    sights: Sights
    clock: Callable[[], float]
    jobs: Jobs = field(init=False)
    _known: tuple[float, tuple[Known, ...]] | None = None
    _home_mark: str | None = None
    _opening: dict[str, asyncio.Lock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.platform.program, self._changed)

    def _changed(self) -> None:
        self._known = None
        self.sights.say(TOPIC)

    async def known(self) -> tuple[Known, ...]:
        if self._known is None or self._known[0] < self.clock():
            found = await asyncio.to_thread(self.platform.known)
            self._known = (self.clock() + _KNOWN_FOR_S, found)
        return self._known[1]

    async def machines(self) -> tuple[OwnMachine, ...]:
        """Instances that exist, free or not."""
        desk = self.platform.desk
        return (await asyncio.to_thread(desk.known)).found if desk is not None else ()

    async def find(self, key: str) -> Known:
        """Raises NoSuchThing."""
        for each in await self.known():
            if each.key == key:
                return each
        raise NoSuchThing(f'cluster "{key}"')

    async def session_at(self, session: Session, key: str) -> Session:
        """The same visitor at another cluster. Raises NoSuchThing, KubeError."""
        root = session.root or session
        if key == self.home and await self._is_home_as_it_was():
            return root
        cluster = await self.find(key)
        async with self._opening.setdefault(key, asyncio.Lock()):
            known = root.others.get(key)
            if known is not None and known[0] == cluster.mark:
                return known[1]
            await self._leave(root, key)  # the cluster that had the name before
            other = await self._open(root, key)
            root.others[key] = (cluster.mark, other)
        return other

    async def _is_home_as_it_was(self) -> bool:
        """It may have been deleted, and made again: then the first client is of no use."""
        now = next((each.mark for each in await self.known() if each.key == self.home), "")
        if self._home_mark is None:
            self._home_mark = now
        return now in ("", self._home_mark)

    async def tidy(self, session: Session) -> None:
        """Leaves clusters of this machine that do not run any more, except the one at which the
        visitor is."""
        root = session.root or session
        open_ = {each.key for each in await self.known() if each.state in (RUNNING, "")}
        for key, (_, other) in list(root.others.items()):
            if key not in open_ and other is not session:
                await self._leave(root, key)

    async def _leave(self, root: Session, key: str) -> None:
        """Ends the watches of a cluster that does not run: they would try again for ever."""
        if known := root.others.pop(key, None):
            await known[1].closing.aclose()

    async def _open(self, root: Session, key: str) -> Session:
        async with AsyncExitStack() as stack:
            kube = await stack.enter_async_context(self.platform.opened(key))
            whose = f"key {key} {id(kube)}"
            sight = await self.sights.open(whose, kube, stack.pop_all())
            leaving = AsyncExitStack()
            leaving.push_async_callback(self.sights.close, whose)
            return Session(kube, sight, root.ends, leaving, root=root)
        raise AssertionError("not reached")

    async def figures(self, session: Session, cluster: Known) -> Figures | None:
        """None: it does not run, does not answer, or was not looked at yet. A context of the
        kubeconfig is not asked before somebody opens it: it may want a sign-in of its own."""
        root = session.root or session
        is_open = cluster.key == self.home or cluster.key in root.others
        if cluster.is_local and cluster.state != RUNNING:
            return None
        if not cluster.is_local and not is_open:
            return None
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._ask(await self.session_at(root, cluster.key))
        except (KubeError, NotRead, NoSuchThing, Denied, SignedOut, TimeoutError):
            return None

    async def _ask(self, session: Session) -> Figures:
        rows = (await session.sight.watch(What(NODES))).rows(node_row).values()
        gpus, _ = await session.sight.gpus()
        version = await session.kube.page("/version")
        ready = sum(row.is_ready for row in rows)
        return Figures(str(version.get("gitVersion") or ""), len(rows), ready, gpus.totals)
