"""WayFinder: keeps what the agent knows about the ways of its node up to date."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from gpupool.agent.injection import Injection
from gpupool.agent.node_writes import published_inventory
from gpupool.agent.settings import AgentSettings
from gpupool.agent.way_facts import RuntimeClasses, cdi_kind, nvidia_plugin, runtime_classes
from gpupool.agent.ways import choose, way_of
from gpupool.contract.names import LABEL_PINNED_WAY
from gpupool.core.ways import OTHERS_PUT_IN, Way, Ways
from kubeclient.client import Kube
from kubeclient.errors import KubeError
from kubeclient.mirror import Mirror
from kubeclient.objects import Obj
from kubeclient.resources import RUNTIME_CLASSES
from kubeclient.times import stamp

log = logging.getLogger(__name__)

_ASK_AGAIN_S = 60.0  # classes change when somebody installs something


class WayFinder:
    def __init__(
        self,
        settings: AgentSettings,
        kube: Kube,
        pods: Mirror,
        injection: Injection,
        changed: Callable[[], None],
    ) -> None:
        """`pods`: those of the node. `changed` is called when `ways` may answer something new."""
        self._settings = settings
        self._kube = kube
        self._pods = pods
        self._injection = injection
        self._changed = changed
        self._classes: tuple[Obj, ...] = ()
        self._plugin: str | None = None  # what `nvidia_plugin` says
        self._is_stale = True
        self._last: Ways | None = None  # the ways when there was one, also of the agent before us
        pods.on_change(lambda old, new: self._pods_changed())

    def _pods_changed(self) -> None:
        # Nothing depends on them where a person has said how.
        if self._settings.way is None:
            self._is_stale = True
            self._changed()

    async def run(self) -> None:
        """Asks for runtime classes, again and again until cancelled."""
        # Where a person has said how, nothing depends on the classes.
        while self._settings.way in (None, Way.RUNTIME_CLASS):
            try:
                classes = tuple((await self._kube.list(RUNTIME_CLASSES)).items)
            except KubeError as error:
                extra = {"node": self._settings.node, "error": str(error)}
                log.warning("runtime classes not read, trying again", extra=extra)
            else:
                if classes != self._classes:
                    self._classes = classes
                    self._changed()
            await asyncio.sleep(_ASK_AGAIN_S)

    def ways(self, node: Obj, uuids: Iterable[str]) -> Ways:
        """As of now. `uuids`: the cards of the node."""
        labels = node["metadata"].get("labels") or {}
        pinned = way_of(labels.get(LABEL_PINNED_WAY, "")) or self._settings.way
        classes = runtime_classes(self._classes, node)
        now_s = time.monotonic()
        found = self._simple(now_s)
        name = self._find_class(found, classes)
        kind = ""
        # Its files are read only where they may matter.
        if pinned is Way.NVIDIA_NRI or (pinned is None and self._nvidia_plugin(found) is not None):
            kind, problem = cdi_kind(self._settings.cdi, uuids)
            found[Way.NVIDIA_NRI] = found.get(Way.NVIDIA_NRI) or self._plugin or problem
        ways = choose(found, pinned=pinned, runtime_class=name, cdi_kind=kind)
        is_checked = ways.chosen in OTHERS_PUT_IN and self._injection.checks_starts(now_s)
        return self._dated(replace(ways, checks_starts=is_checked), node)

    def _dated(self, ways: Ways, node: Obj) -> Ways:
        if self._last is None:  # only at first: later our own memory is newer
            self._last = published_inventory(node).ways or Ways()
        # Before the runtime classes are read, there may be none for a moment.
        if ways.chosen is not None:
            is_same = ways.chosen is self._last.chosen and self._last.since
            self._last = replace(ways, since=self._last.since if is_same else stamp(time.time()))
            return self._last
        return ways

    def _simple(self, now_s: float) -> dict[Way, str]:
        found = {}
        own = self._settings.own_driver
        if own is not None and own.arrived():
            found[own.way] = ""
        if self._settings.mounts:
            found[Way.MOUNTS] = ""
        if self._injection.is_there:
            found[Way.NRI] = self._injection.problem(now_s)
        return found

    def _find_class(self, found: dict[Way, str], classes: RuntimeClasses) -> str:
        own = self._settings.own_driver
        if Way.RUNTIME_CLASS in found and own is not None:
            return own.runtime_class
        if classes.works:
            found[Way.RUNTIME_CLASS] = ""
        return classes.name

    def _nvidia_plugin(self, found: dict[Way, str]) -> str | None:
        if self._is_stale:
            self._is_stale = False
            self._plugin = nvidia_plugin(self._pods)
        return self._plugin if self._plugin is not None else found.get(Way.NVIDIA_NRI)
