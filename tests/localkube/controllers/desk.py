"""A test bench for controllers: a real API server in this process, and controllers without a work
loop. The test decides when they reconcile, what the time is, and in which phase pods are, so that
nothing happens at an unexpected moment.
"""

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from kubeclient.client import Kube
from kubeclient.errors import Conflict, NotFound
from kubeclient.events import Recorder
from kubeclient.mirror import Key, Mirrors
from kubeclient.objects import Obj
from kubeclient.resources import CRDS, NODES, PODS, Resource
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build
from localkube.apiserver.store.watch_log import Event
from localkube.controllers.crd_part import PARTS
from localkube.controllers.run import Context, Controller
from tests.conformance.api_server import NoNodes

MOST_ROUNDS = 500  # a controller that still has work then has a bug


class Desk:
    def __init__(self, server: ApiServer, controllers: Iterable[Controller]) -> None:
        self.server = server
        self.kube: Kube = server.client(ADMIN)
        self.mirrors = Mirrors(self.kube, parts=PARTS)
        self.late = datetime.timedelta()
        self.waiting: dict[tuple[int, Key], None] = {}
        self._again_s: dict[tuple[int, Key], float | None] = {}
        self.written: dict[str, int] = {}  # resource -> its newest version
        self.controllers = list(controllers)
        self.contexts = [self._wire(number) for number in range(len(self.controllers))]
        server.api.store.on_change(self._wrote)

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC) + self.late

    def forward(self, seconds: float) -> None:
        """Moves the clock, and queues every key of every controller again."""
        self.late += datetime.timedelta(seconds=seconds)
        for number, controller in enumerate(self.controllers):
            watch = controller.watches[0]
            context = self.contexts[number]
            for obj in context.of(watch.resource):
                for key in watch.keys(obj, context):
                    self.waiting[number, key] = None

    def again_s(self, name: str, controller: int = 0) -> float:
        """The seconds until the next reconcile that the last one asked for; 0: none."""
        return self._again_s[controller, ("default", name)] or 0.0

    async def settle(self) -> None:
        """Reconciles until no key waits."""
        for _ in range(MOST_ROUNDS):
            await self._catch_up()
            if not self.waiting:
                return
            number, key = next(iter(self.waiting))
            del self.waiting[number, key]
            try:
                controller, context = self.controllers[number], self.contexts[number]
                self._again_s[number, key] = await controller.reconcile(key, context)
            except Conflict:
                self.waiting[number, key] = None
        raise AssertionError("the controllers never come to rest")

    async def _catch_up(self) -> None:
        for mirror in self.mirrors._mirrors.values():
            resource = mirror.resource
            name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            while mirror.version < self.written.get(name, 0):  # noqa: ASYNC110
                await asyncio.sleep(0)  # let the mirror run

    def _wrote(self, event: Event) -> None:
        self.written[event.record.resource] = event.record.rv

    def _wire(self, number: int) -> Context:
        controller = self.controllers[number]
        recorder = Recorder(self.kube, controller.name, self.now)
        context = Context(self.kube, self.mirrors, recorder, self.now)
        for resource in controller.reads:
            context.of(resource)
        for watch in controller.watches:

            def changed(
                old: Obj | None, new: Obj | None, keys: object = watch.keys, number: int = number
            ) -> None:
                for obj in (old, new):
                    if obj is not None:
                        for key in keys(obj, self.contexts[number]):  # type: ignore[operator]
                            self.waiting[number, key] = None

            context.of(watch.resource).on_change(changed)
        controller.add_indexes(context)
        return context

    # -- objects -------------------------------------------------------------------------------

    async def get(self, resource: Resource, name: str) -> Obj:
        return await self.kube.get(resource, name, "default" if resource.namespaced else "")

    async def all(self, resource: Resource) -> list[Obj]:
        return (await self.kube.list(resource)).items

    async def names(self, resource: Resource) -> list[str]:
        return [obj["metadata"]["name"] for obj in await self.all(resource)]

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        metadata = {"namespace": "default", **obj["metadata"]}
        if not resource.namespaced:
            del metadata["namespace"]
        return await self.kube.create(resource, {**obj, "metadata": metadata})

    async def patch(self, resource: Resource, name: str, change: Obj) -> Obj:
        namespace = "default" if resource.namespaced else ""
        return await self.kube.patch(resource.path(namespace, name), change)

    async def delete(self, resource: Resource, name: str, options: Obj | None = None) -> None:
        await self.kube.delete(resource, name, "default", options=options)

    async def add_node(self, name: str, **spec: object) -> None:
        labels = {"kubernetes.io/hostname": name}
        await self.create(NODES, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        await self.patch(
            NODES, name, {"spec": {"taints": None}}
        )  # new nodes have the not-ready taint

    def events(self, reason: str = "") -> list[str]:
        """The messages of the controllers' events; those of one object in order, newest last."""
        queues = [queue for context in self.contexts for queue in context.events._queues]
        said = [event for queue in queues for event in list(queue._queue)]  # type: ignore[attr-defined]
        return [event["message"] for event in said if reason in ("", event["reason"])]

    # -- pods ----------------------------------------------------------------------------------

    async def pods(self) -> dict[str, Obj]:
        return {pod["metadata"]["name"]: pod for pod in await self.all(PODS)}

    async def set_phase(self, pod: Obj, phase: str, **more: object) -> None:
        ready = "True" if phase == "Running" else "False"
        stamp = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": stamp}]
        status = {"phase": phase, "conditions": conditions, **more}
        path = PODS.path("default", pod["metadata"]["name"], "status")
        with contextlib.suppress(NotFound):
            await self.kube.patch(path, {"status": status})

    async def run_pods(self, *names: str) -> None:
        """Makes pending pods running and ready: all of them, or those named."""
        for name, pod in (await self.pods()).items():
            waits = pod["status"]["phase"] == "Pending"
            if waits and "deletionTimestamp" not in pod["metadata"] and name in (names or (name,)):
                await self.set_phase(pod, "Running")

    async def bind(self, name: str, node: str) -> None:
        pod = await self.get(PODS, name)
        await self.kube.bind(pod, node, {})

    async def finish_deletions(self) -> None:
        for name, pod in (await self.pods()).items():
            if "deletionTimestamp" in pod["metadata"]:
                with contextlib.suppress(NotFound):
                    await self.delete(PODS, name, {"gracePeriodSeconds": 0})

    async def run_to_the_end(self) -> None:
        """Runs pending pods, finishes deletions and reconciles, until nothing changes any more."""
        await self.settle()
        for _ in range(MOST_ROUNDS):
            before = self.server.api.store.rv
            await self.run_pods()
            await self.finish_deletions()
            await self.settle()
            if self.server.api.store.rv == before:
                return
        raise AssertionError("this never ends")


@contextlib.asynccontextmanager
async def desk_for(
    directory: Path, *controllers: Controller, crds: Iterable[Obj] = ()
) -> AsyncIterator[Desk]:
    """`crds`: custom resources that the controllers watch."""
    server = _server(directory)
    try:
        await server.bootstrap(6443)
        for crd in crds:
            await server.client(ADMIN).create(CRDS, crd)
        desk = Desk(server, controllers)
        following = [asyncio.create_task(mirror.run()) for mirror in desk.mirrors]
        for mirror in desk.mirrors:
            await mirror.wait_synced()
        try:
            yield desk
        finally:
            for task in following:
                task.cancel()
            for ended in await asyncio.gather(*following, return_exceptions=True):
                if isinstance(ended, Exception):
                    raise ended
    finally:
        server.close()


def _server(directory: Path) -> ApiServer:
    directory.chmod(0o700)
    return build(directory, certificates.ensure(directory), StaticTokens(), NoNodes())


def named(objects: Iterable[Obj]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]
