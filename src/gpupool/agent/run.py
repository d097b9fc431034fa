"""The agent of a node: reads its cards every second, and publishes what has changed.

    driver ──look──> cards.py ──> inventory ─┬─> devices.py ──> plugins ──> kubelet
    node's labels and orders ──────┘         └─> labels.py ───> node_writes.py ──> API server

`run_agent` keeps no global state: in a local cluster one process runs hundreds, one for each node.
"""

import asyncio
import contextlib
import datetime
import logging
import time
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from gpupool.agent.auditor import Auditor
from gpupool.agent.card_watch import CardWatch
from gpupool.agent.cards import (
    NodeCards,
    Orders,
    after_look,
    after_silence,
    inventory_after,
    never_read,
    remembered,
    waits_for_time,
)
from gpupool.agent.devices import RESOURCES, offers
from gpupool.agent.endpoint import Pages, serve, serve_scrapers
from gpupool.agent.holdings import Holdings, current_holdings
from gpupool.agent.injection import Injection
from gpupool.agent.isolation import NO_LIMITER, IsolationState, next_isolation
from gpupool.agent.labels import card_labels, feature_labels, way_labels
from gpupool.agent.light_pods import LightPods
from gpupool.agent.limiter import Installed, LimiterPlace, install_limiter
from gpupool.agent.metrics import Metrics
from gpupool.agent.news import (
    OTHER_PLUGIN,
    News,
    driver_holds,
    label_conflict,
    news_of,
    no_driver,
    not_read,
    way_news,
)
from gpupool.agent.node_events import NodeEvents
from gpupool.agent.node_writes import NodeWriter, Wanted, problem_text, published_inventory
from gpupool.agent.plugin import HOLD_BACK, ResourcePlugin
from gpupool.agent.pod_reports import PodReports
from gpupool.agent.registration import is_listened_to, keep_registered, remove_left_sockets
from gpupool.agent.sampler import Sampler
from gpupool.agent.settings import AgentSettings
from gpupool.agent.shares import Shares
from gpupool.agent.wall_keeper import WallKeeper
from gpupool.agent.way_finder import WayFinder
from gpupool.agent.ways import card_check, refusal_of, without_closed_cards
from gpupool.contract.card_orders import BadOrders, orders_of
from gpupool.contract.inventory import inventory_text
from gpupool.contract.names import (
    ANNOTATION_CLEARED_CARDS,
    ANNOTATION_CORDONED_CARDS,
    LABEL_ISOLATION,
    NVIDIA_PLUGIN_SOCKET,
    RESOURCE_GPU,
)
from gpupool.contract.nodes import gpu_mode, isolates
from gpupool.core.gpu import Inventory, Wall
from gpupool.core.ways import Way, Ways
from gpupool.hardware.driver import Driver, NoDriver, NotAnswering
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.events import Recorder
from kubeclient.kubeletapi.messages import Mount
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import NODES

log = logging.getLogger(__name__)

COMPONENT = "gpupool-agent"
_LOOKS_PER_TRY = 10  # without a driver, it is looked for this many times less often
_ASK_HOLDINGS_S = 10.0
_PAUSE_AFTER_FAILURE_S = 2.0


async def run_agent(settings: AgentSettings, driver: Driver, kube: Kube) -> None:
    """Runs until cancelled. Raises BadSocketPath, DriverReplaced; retries after other errors."""
    remove_left_sockets(settings.plugins)
    agent = _Agent(settings, driver, kube)
    try:
        async with asyncio.TaskGroup() as tasks:
            for name, work in agent.programs().items():
                tasks.create_task(work, name=f"agent-{name}")
    except ExceptionGroup as group:
        # Callers handle BadSocketPath and DriverReplaced, not groups. The first failure cancels all
        # other tasks, so it is the one that matters.
        raise group.exceptions[0] from group
    finally:
        await driver.close()


class _Agent:
    def __init__(self, settings: AgentSettings, driver: Driver, kube: Kube) -> None:
        self._settings = settings
        self._driver = driver
        self._kube = kube
        self._mirror = Mirror(
            kube, NODES, query={"fieldSelector": f"metadata.name={settings.node}"}
        )
        self._mirror.on_change(lambda old, new: self._node_changed())
        self._recorder = Recorder(kube, COMPONENT, partial(datetime.datetime.now, datetime.UTC))
        self._events = NodeEvents(settings.node, self._recorder)
        self._keeper = WallKeeper(settings.node, settings.walls, self._recorder)
        self._shares = Shares(kube, settings.node, settings.volumes, self._node, self._keeper)
        self._pods = LightPods(self._shares.pods)
        reports = PodReports(kube, settings.node, self._recorder, self._node)
        self._auditor = Auditor(settings, driver, reports)
        self._card_watch = CardWatch(settings, reports, lambda: self._ways)
        self._writer = NodeWriter(kube)
        self._metrics = Metrics(settings.node)
        told = self._look_again, partial(self._card_watch.refused, self._pods, self._metrics)
        self._injection = Injection(settings, self._limiter_mounts, self._keeper, *told)
        seen = self._shares.pods, self._injection, self._look_again
        self._finder = WayFinder(settings, kube, *seen)
        self._sampler = Sampler(settings, driver, lambda: self._inventory)
        self._pages = Pages(settings.node, self._metrics.text, self._sampler.readings)
        self._plugins = {
            resource: ResourcePlugin(resource)
            for resource in RESOURCES
            if resource != RESOURCE_GPU or settings.whole_cards
        }
        self._known: NodeCards | None = None  # None before the first look
        self._inventory = Inventory()
        self._ways = Ways()
        self._wanted: Wanted | None = None
        self._orders = Orders({}, {})
        self._carried_out = ""  # the annotation with orders to clear that was carried out last
        self._isolation = IsolationState()
        self._installed: Installed | None = None  # the limiter; None before the first good look
        self._holdings: Holdings = {}
        self._offered: tuple[object, ...] | None = None  # the inputs of the last offer
        # The inputs of the last reading, if handling the same inputs again would change nothing.
        self._settled: object = None
        self._has_rival = False  # NVIDIA's device plugin runs here, and counts the same cards
        self._look_now = asyncio.Event()
        self._write_now = asyncio.Event()
        self._is_bad = asyncio.Event()  # set while some card takes no pods

    def programs(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {
            "node": self._mirror.run(),
            "events": self._recorder.run(),
            "looks": self._keep_looking(),
            "writes": self._keep_writing(),
            "holdings": self._keep_asking(),
            "limiter": self._keep_installing(),
            "injection": self._injection.run(),
            "ways": self._finder.run(),
            "pods": self._shares.pods.run(),
            "shares": self._shares.run(),
            "audit": self._auditor.run(self._pods, self._metrics),
            "cards": self._card_watch.run(self._pods, self._metrics),
            "walls": self._keeper.run(
                self._pods, lambda: self._inventory, self._metrics, self._look_now.set
            ),
            "samples": self._sampler.run(self._shares.pods),
            "endpoint": serve(self._pages, self._settings.serve),
            "scrapers": serve_scrapers(self._pages, self._settings.scrapers, self._kube),
            **{
                name: keep_registered(plugin, self._settings.plugins)
                for name, plugin in self._plugins.items()
            },
        }

    def _node(self) -> Obj | None:
        return self._mirror.get(self._settings.node)

    def _look_again(self) -> None:
        self._settled = None
        self._look_now.set()

    def _node_changed(self) -> None:
        self._look_now.set()
        self._write_now.set()
        self._shares.look_again()

    # -- reading ---------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        await self._mirror.wait_synced()
        while True:
            node = self._node()
            if node is not None:
                await self._look(node)
            pause_s = self._settings.look_s * (1 if self._metrics.has_driver else _LOOKS_PER_TRY)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._look_now.wait()
            self._look_now.clear()

    async def _look(self, node: Obj) -> None:
        now_s = time.monotonic()  # not the time of day, which may be set back
        # Only before the first look: later our own memory is newer than what the mirror shows.
        if self._known is None:
            self._inventory = published_inventory(node)
            self._known = remembered(self._inventory, self._settings.policy, now_s)
        try:
            look = await self._driver.look()
        except NoDriver as error:
            if self._metrics.has_driver is not False:
                self._events.say(node, no_driver(str(error)))
            self._metrics.has_driver = False
            self._settled = None
            self._tell_without_look(node, error)
            return
        self._metrics.has_driver = True
        if self._settings.install is not None and self._installed is None:
            # Before the first inventory: it tells whether shares are isolated.
            await self._install(node, self._settings.install)
        self._metrics.count_xids(look.xids)
        self._has_rival = is_listened_to(self._settings.plugins / NVIDIA_PLUGIN_SOCKET)
        # The resourceVersion stands for labels and orders of the node, which change what we
        # publish.
        version = node["metadata"]["resourceVersion"]
        known_walls = self._keeper.wall(True), self._keeper.others
        self._ways = self._finder.ways(node, [card.uuid for card in look.cards if card.uuid])
        seen = look, version, self._holdings, self._has_rival, known_walls, self._ways
        if seen == self._settled:
            return  # skip an unchanged reading: one process may run hundreds of agents
        self._settled = None
        self._read_orders(node)
        before = self._known
        self._known = after_look(before, look, self._orders, self._settings.policy, now_s)
        inventory = inventory_after(self._known, self._orders, self._settings.unit_mib)
        self._tell(node, self._known, self._with_walls(node, inventory))
        for card in never_read(self._known, look):
            self._events.say_once(node, not_read(card.index, card.error))
        # While readings of outside memory still differ, `_known` does, too, and nothing is settled
        # yet.
        if self._known == before and not waits_for_time(self._known):
            self._settled = seen

    def _tell_without_look(self, node: Obj, error: NoDriver) -> None:
        assert self._known is not None
        if not isinstance(error, NotAnswering):
            # `_known` stays as it is: when the driver comes back, XIDs from before still count.
            self._tell(node, NodeCards(), Inventory())
            return
        # The cards stay published, unhealthy. Otherwise an agent that starts now would not know
        # which XIDs there were, and the scheduler not which cards the pods hold.
        self._read_orders(node)
        self._known = after_silence(self._known, str(error))
        inventory = inventory_after(self._known, self._orders, self._settings.unit_mib)
        self._tell(node, self._known, self._with_walls(node, inventory))

    def _read_orders(self, node: Obj) -> None:
        """Orders that cannot be read change nothing: cordoned cards stay cordoned."""
        annotations = node["metadata"].get("annotations") or {}
        cleared = annotations.get(ANNOTATION_CLEARED_CARDS, "")
        try:
            cordoned = orders_of(annotations.get(ANNOTATION_CORDONED_CARDS, ""))
            # Once only: the annotation stays visible until its removal reaches the mirror, and XIDs
            # that occur meanwhile must not be forgotten.
            is_new = cleared != self._carried_out
            self._orders = Orders(cordoned, orders_of(cleared) if is_new else {})
            self._carried_out = cleared
        except BadOrders as error:
            self._orders = Orders(self._orders.cordoned, {})
            self._events.say_once(node, News(True, "BadCardOrders", str(error)))

    def _with_walls(self, node: Obj, inventory: Inventory) -> Inventory:
        isolates = self._isolates(node)
        wall = self._keeper.wall(isolates)
        if wall is Wall.DRIVER:
            self._events.say_once(node, driver_holds(inventory.driver))
        return replace(inventory, isolates=isolates, wall=wall, other_walls=self._keeper.others)

    def _isolates(self, node: Obj) -> bool | None:
        labels = node["metadata"].get("labels") or {}
        has_limiter = bool(self._limiter_mounts())
        now_s = time.monotonic()
        self._isolation = next_isolation(
            self._isolation, labels, has_limiter=has_limiter, now_s=now_s
        )
        if self._isolation.published is False and isolates(labels):
            self._events.say_once(node, NO_LIMITER)
        return self._isolation.published

    def _limiter_mounts(self) -> tuple[Mount, ...]:
        installed = self._installed.mounts if self._installed is not None else ()
        return self._settings.limiter + installed

    async def _install(self, node: Obj, place: LimiterPlace) -> None:
        self._installed = await install_limiter(place, self._driver)
        self._metrics.context_mib = self._installed.context_mib
        self._settled = None
        if not self._installed.is_complete:
            self._events.say_once(node, News(True, "LimiterIncomplete", self._installed.problem))

    # -- publishing ------------------------------------------------------------------------

    def _tell(self, node: Obj, known: NodeCards, inventory: Inventory) -> None:
        inventory = replace(inventory, ways=self._ways) if inventory.cards else inventory
        for news in (*news_of(self._inventory, inventory), *way_news(self._inventory, inventory)):
            self._events.say(node, news)
        self._inventory = inventory
        inventory = self._metrics.inventory = without_closed_cards(inventory)
        if all(card.takes_pods for card in inventory.cards):
            self._is_bad.clear()
        else:
            self._is_bad.set()
        # Before the inventory is written: as soon as it promises isolation, the scheduler relies on
        # it, and then the limiter must be among the mounts.
        self._offer(node, inventory)
        labels = card_labels(known) | way_labels(inventory)
        if inventory.wall is Wall.DRIVER:
            labels |= {LABEL_ISOLATION: str(inventory.wall)}
        if self._settings.feature_labels:
            labels |= feature_labels(known)
        wanted = Wanted(
            labels,
            inventory_text(inventory) if inventory.cards else "",
            problem_text(self._inventory),
            self._settings.switches if inventory.cards else {},
            self._carried_out,
        )
        if wanted != self._wanted:
            self._wanted = wanted
            self._write_now.set()

    def _offer(self, node: Obj, inventory: Inventory) -> None:
        labels = node["metadata"].get("labels") or {}
        mode = gpu_mode(labels)
        is_limiting = self._isolation.is_limiting(time.monotonic())
        mounts = self._settings.mounts
        if self._ways.chosen is Way.NRI:
            mounts += (HOLD_BACK,)
        # The injector brings the limiter to those containers that it is for.
        elif is_limiting:
            mounts += self._limiter_mounts()
        refusal = refusal_of(self._settings.node, self._ways)
        check = card_check(self._settings.node, self._ways, self._settings.control_devices)
        wanted = inventory.cards, mode, mounts, self._holdings, self._has_rival, refusal, check
        if wanted == self._offered:
            return  # do not build a list of thousands of devices every second
        self._offered = wanted
        found = offers(inventory.cards, mode, self._holdings)
        for resource, plugin in self._plugins.items():
            if resource == RESOURCE_GPU and self._has_rival:
                plugin.withdraw()
                self._events.say_once(node, OTHER_PLUGIN)
                continue
            plugin.set_answer(mounts, refusal, check)
            plugin.offer(found[resource])
            if found[resource].refusal:
                self._events.say_once(node, News(True, "GpuUnitTooSmall", found[resource].refusal))

    # -- writing and asking, each in its own task ------------------------------------------

    async def _keep_writing(self) -> None:
        while True:
            await self._write_now.wait()
            # Cleared before the node is read, so that a change during the write sets it again.
            self._write_now.clear()
            node = self._node()
            if node is None or self._wanted is None:
                continue
            try:
                await self._writer.write(node, self._wanted)
            except KubeError as error:
                extra = {"node": self._settings.node, "error": str(error)}
                log.warning("node not written, trying again", extra=extra)
                await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)
                self._write_now.set()
            if self._writer.theirs:
                self._events.say_once(node, label_conflict(self._writer.theirs))

    async def _keep_installing(self) -> None:
        """Tries again while the limiter is not as it should be."""
        while self._settings.install is not None:
            await asyncio.sleep(self._settings.install_again_s)
            node = self._node()
            if node is not None and self._installed and not self._installed.is_complete:
                await self._install(node, self._settings.install)
                self._look_now.set()

    async def _keep_asking(self) -> None:
        """While a card takes no pods, asks who holds devices, to mark the right ones unhealthy."""
        settings = self._settings
        while True:
            await self._is_bad.wait()
            found = await current_holdings(self._kube, settings.node, settings.pod_resources)
            if found != self._holdings:
                self._holdings = found
                self._look_now.set()
            await asyncio.sleep(_ASK_HOLDINGS_S)
