"""Sight: what visitors with the same rights see of the cluster, live, and shared by all of them."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from gpupool.console.drain import Drains
from gpupool.console.gpu_views import GpuViews
from gpupool.console.gpus import Overview
from gpupool.console.model import Model, NewModel
from gpupool.console.read_cards import READINGS, ReadCards
from gpupool.console.recent_use import RecentUse
from gpupool.console.rights import Denied, Right, Rights
from gpupool.console.schemas import Documents, Schemas
from gpupool.console.watches import Watch, Watches, What
from gpupool.console.words import word
from gpupool.contract.names import AGENT_NAMESPACE
from gpupool.history.database import NoHistory
from gpupool.history.pages import History
from gpupool.history.reader import Points
from gpupool.history.series import Kind
from kubeclient.client import Kube

_HISTORY_GOOD_FOR_S = 20.0  # a collector writes once a minute
_HISTORY_WITHIN_S = 4.0  # a page does not wait longer for the past

# Where the past of the cluster is, for whoever has this client.
HistoryOf = Callable[[Kube], History]
Asked = tuple[Kind, str, int]  # kind and name of a series, and how many seconds of it


@dataclass(slots=True)
class Sight:
    kube: Kube
    new_model: NewModel
    clock: Callable[[], float]
    history_of: HistoryOf | None = None
    agents: str = AGENT_NAMESPACE  # the namespace of the agents
    documents: Documents = field(default_factory=Documents)  # of the API, for all visitors
    watches: Watches = field(init=False)
    rights: Rights = field(init=False)
    cards: ReadCards = field(init=False)
    schemas: Schemas = field(init=False)
    recent: RecentUse = field(init=False)
    drains: Drains = field(default_factory=Drains)
    _model: Model | None = None
    _gpus: GpuViews | None = None
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)
    _past: dict[Asked, tuple[Points | None, str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.watches = Watches(self.kube, self.clock)
        self.rights = Rights(self.kube, self.clock)
        self.schemas = Schemas(self.kube, self.clock, self.documents)
        self.recent = RecentUse(
            partial(self.history_of, self.kube) if self.history_of is not None else None,
            self.clock,
            lambda: self.watches.say(READINGS),
        )
        self.cards = ReadCards(self.kube, self.clock, self.watches.say, self.agents)

    async def watch(self, what: What) -> Watch:
        """Raises Denied, NotRead, SignedOut, KubeError."""
        for verb in ("list", "watch"):
            await self.rights.require(Right(verb, what.resource, what.namespace))
        return await self.watches.of(what)

    async def model(self) -> tuple[Model, list[Watch]]:
        """The scheduler's view, and what it is made of. Needs the right to see all nodes and pods.
        Raises as `watch`."""
        async with self._beginning:
            model = self._model or self.new_model()
            followed = []
            for resource in model.handlers:
                try:
                    followed.append(await self.watch(What(resource)))
                except Denied:
                    if resource not in model.optional:
                        raise
            if self._model is None:
                for watch in followed:
                    watch.is_pinned = True
                    watch.mirror.on_change(model.handlers[watch.what.resource])
                self._model = model
        return model, followed

    async def gpus(self) -> tuple[Overview, list[Watch]]:
        """As `model`. Made for each change of the cluster, of what has changed."""
        model, followed = await self.model()
        if self._gpus is None:
            self._gpus = GpuViews(model.cluster)
        return self._gpus.now(), followed

    async def points(self, kind: Kind, name: str, span_s: int) -> tuple[Points | None, str]:
        """The last seconds of one series; or None, and why there is no history."""
        asked, now = (kind, name, span_s), self.clock()
        known = self._past.get(asked)
        if known is None or known[2] < now:
            self._past = {k: v for k, v in self._past.items() if v[2] >= now}
            points, why = await self._ask_history(kind, name, span_s)
            known = self._past[asked] = (points, why, self.clock() + _HISTORY_GOOD_FOR_S)
        return known[0], known[1]

    async def _ask_history(self, kind: Kind, name: str, span_s: int) -> tuple[Points | None, str]:
        if self.history_of is None:
            return None, word("this console was started without one")
        try:
            async with asyncio.timeout(_HISTORY_WITHIN_S):
                history = self.history_of(self.kube)
                return await history.points(kind, name, time.time() - span_s), ""
        except NoHistory as error:
            return None, str(error)
        except TimeoutError:
            return None, word("the collector did not answer in time")

    async def end(self) -> None:
        await self.drains.end_all()
        await self.cards.end()
        await self.recent.end()
        await self.watches.end_all()
        self._model = self._gpus = None


@dataclass(slots=True)
class _Shared:
    sight: Sight
    closing: AsyncExitStack  # ends its client
    users: int = 0


@dataclass(slots=True)
class Sights:
    """The sights that are open, by whose rights they have. Each ends with its last session, and its
    client with it: the session that brought the client may end before others of its rights."""

    new_model: NewModel
    clock: Callable[[], float]
    history_of: HistoryOf | None = None
    agents: str = AGENT_NAMESPACE
    _documents: Documents = field(default_factory=Documents)
    _open: dict[str, _Shared] = field(default_factory=dict)

    async def open(self, whose: str, kube: Kube, closing: AsyncExitStack) -> Sight:
        """`closing` ends the client: at once, if there is one with these rights already."""
        shared = self._open.get(whose)
        if shared is None:
            shared = self._open[whose] = _Shared(self._new(kube), closing)
            closing = AsyncExitStack()
        shared.users += 1
        await closing.aclose()
        return shared.sight

    def _new(self, kube: Kube) -> Sight:
        return Sight(
            kube, self.new_model, self.clock, self.history_of, self.agents, self._documents
        )

    def say(self, topic: str) -> None:
        """Pages of all visitors that show it are made again."""
        for shared in self._open.values():
            shared.sight.watches.say(topic)

    async def close(self, whose: str) -> None:
        shared = self._open[whose]
        shared.users -= 1
        if not shared.users:
            del self._open[whose]
            await shared.sight.end()
            await shared.closing.aclose()
