"""Visit: one request for a page, with all that a page may ask for.

A page reads the cluster only through its visit. So the visit knows what the page has read, and the
page is made again when one of these things changes (`stream.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote, urlencode

from gpupool.console.drain import Drain, drain_topic
from gpupool.console.gpus import Overview
from gpupool.console.machines import MachineType
from gpupool.console.model import Model
from gpupool.console.own_clusters import TOPIC, OwnClusters
from gpupool.console.read_cards import READINGS
from gpupool.console.rights import Right
from gpupool.console.sessions import Session
from gpupool.console.watches import Topic, Watch, What
from gpupool.console.words import Translate
from gpupool.core.readings import CardReading
from gpupool.history.reader import Points
from gpupool.history.series import Kind
from kubeclient.client import Kube
from kubeclient.objects import Obj
from kubeclient.resources import Resource

Row = TypeVar("Row")


@dataclass(slots=True)
class Visit:
    session: Session
    cluster: str  # its name, as in the address
    t: Translate
    names: Mapping[str, str]  # the parts of the address that are names: node, namespace
    query: Mapping[str, str]
    samples: Mapping[str, str]  # manifests to begin with, by name
    machines: tuple[MachineType, ...] = ()  # that node pools can be made of
    own: OwnClusters | None = None  # the owner's clusters; None: this console serves others
    read: dict[Topic, int] = field(default_factory=dict)  # with the count of changes so far

    @property
    def kube(self) -> Kube:
        """For what the page does; what it shows comes from `objects`, `rows` and `model`."""
        return self.session.kube

    @property
    def namespace(self) -> str:
        """That which the visitor chose at the top of the page; empty: all of them."""
        return self.query.get("namespace", "")

    def link(self, /, *parts: str, **query: str) -> str:
        """The address of another page of this cluster."""
        path = "/".join(quote(part, safe="") for part in ("clusters", self.cluster, *parts))
        asked = urlencode({key: value for key, value in query.items() if value})
        return f"/{path}?{asked}" if asked else f"/{path}"

    async def watch(
        self, resource: Resource, namespace: str | None = None, *, field_selector: str = ""
    ) -> Watch:
        """`namespace`: that of the visit if not given. Whoever may see all namespaces gets the copy
        with all of them, so that there is one. Raises Denied, NotRead, KubeError."""
        inside = self._inside(resource, namespace)
        if inside and not field_selector:
            everywhere = (Right(verb, resource) for verb in ("list", "watch"))
            if not await self.lacks(*everywhere):
                inside = ""
        return self._noted(await self.session.sight.watch(What(resource, inside, field_selector)))

    async def rows(
        self, resource: Resource, make: Callable[[Obj], Row], namespace: str | None = None
    ) -> list[Row]:
        """One value for each object; `make` is a function of a module. Raises as `watch`."""
        rows = (await self.watch(resource, namespace)).rows(make)
        inside = self._inside(resource, namespace)
        return [row for key, row in rows.items() if inside in ("", key[0])]

    async def model(self) -> Model:
        """Raises as `watch`: it needs the right to see all nodes and pods."""
        model, followed = await self.session.sight.model()
        for each in followed:
            self._noted(each)
        return model

    async def gpus(self) -> Overview:
        """Nodes with cards, and who holds them. Raises as `model`."""
        found, followed = await self.session.sight.gpus()
        for each in followed:
            self._noted(each)
        return found

    async def readings(self, nodes: frozenset[str]) -> dict[str, CardReading]:
        """By uuid. What is not there is unknown."""
        # Noted before they are asked: what comes while the page is made is not missed.
        self.read[READINGS] = self.session.sight.watches.count(READINGS)
        return await self.session.sight.cards.of(nodes)

    async def recent_use(self) -> dict[str, CardReading]:
        """As `readings`, of all cards and of the last minutes: for pages with many nodes."""
        self.read[READINGS] = self.session.sight.watches.count(READINGS)
        return await self.session.sight.recent.cards()

    async def history(self, kind: Kind, name: str, span_s: int) -> tuple[Points | None, str]:
        """The last seconds of one series; or None, and why there is none. It holds nothing that the
        page's own rights do not cover: who shows it has read the thing itself."""
        return await self.session.sight.points(kind, name, span_s)

    async def lacks(self, *rights: Right) -> str:
        """The first right that the visitor does not have, in words; empty: all are there."""
        for right in rights:
            if not await self.session.sight.rights.has(right):
                return self.t("You do not have the right: {right}", right=right.words)
        return ""

    def own_clusters(self) -> OwnClusters | None:
        """The page is made again when one of them is made, started, stopped or deleted."""
        self.read[TOPIC] = self.session.sight.watches.count(TOPIC)
        return self.own

    def drain_of(self, node: str) -> Drain | None:
        """The page is made again when the drain gets on, or when one begins."""
        topic = drain_topic(node)
        self.read[topic] = self.session.sight.watches.count(topic)
        return self.session.sight.drains.of(node)

    def _inside(self, resource: Resource, namespace: str | None) -> str:
        wanted = self.namespace if namespace is None else namespace
        return wanted if resource.namespaced else ""

    def _noted(self, watch: Watch) -> Watch:
        self.read[watch.what] = watch.count
        return watch
