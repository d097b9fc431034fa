"""The work loop that all controllers share: a change of an object queues keys, and workers
reconcile them. A key whose reconcile fails is tried again with exponential backoff.

A controller is a value: the resources that it watches, the keys that a change of each concerns, and
a coroutine that reconciles one key. It reads mirrors, never changes the objects in them, and writes
through the API like any other client.

Each controller is supervised on its own (supervision.py): one that fails is started again, with
all keys to be looked at, while the others go on. It waits for its own mirrors only. A key that
breaks the reconcile is an event on its object, and is tried again.
"""

import asyncio
import contextlib
import datetime
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.events import Recorder
from kubeclient.mirror import Changed, Key, Mirror, Mirrors, key_of
from kubeclient.mirror_faults import text_of
from kubeclient.objects import Obj
from kubeclient.resources import Resource
from kubeclient.turns import Turns
from localkube.controllers.crd_part import PARTS
from localkube.controllers.pods import controller_of
from localkube.supervision import Supervisor
from localkube.work_queue import WorkQueue

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """What a reconcile function may use."""

    kube: Kube
    mirrors: Mirrors
    events: Recorder
    now: Callable[[], datetime.datetime] = now

    def of(self, resource: Resource) -> Mirror:
        return self.mirrors.of(resource)

    async def delete(
        self, resource: Resource, obj: Obj, *, unchanged: bool = False, **options: object
    ) -> None:
        """Deletes the object that was seen, never a later one of its name; it is no error if it is
        gone. `unchanged`: only if it is still as it was seen. Raises Conflict if it is not."""
        metadata = obj["metadata"]
        wanted = {"uid": metadata["uid"]}
        if unchanged:
            wanted["resourceVersion"] = metadata["resourceVersion"]
        body: Obj = {**options, "preconditions": wanted}
        try:
            await self.kube.delete(
                resource, metadata["name"], metadata.get("namespace", ""), options=body
            )
        except NotFound:
            return
        except Conflict:
            if unchanged:
                raise


# Returns after how many seconds to reconcile the key again without a change, or None.
Reconcile = Callable[[Key, Context], Awaitable[float | None]]
KeysOf = Callable[[Obj, Context], Iterable[Key]]


def itself(obj: Obj, _: Context) -> Iterable[Key]:
    return (key_of(obj),)


def controlled_by(kind: str) -> KeysOf:
    """The key of the object's controller, if that is of the kind."""

    def keys(obj: Obj, _: Context) -> Iterable[Key]:
        owner = controller_of(obj)
        if owner is not None and owner["kind"] == kind:
            yield obj["metadata"].get("namespace", ""), owner["name"]

    return keys


@dataclass(frozen=True, slots=True)
class Watch:
    resource: Resource
    keys: KeysOf = itself  # called with the old and the new state of an object


@dataclass(frozen=True, slots=True)
class Controller:
    name: str  # as events name it: "deployment-controller"
    watches: tuple[Watch, ...]
    reconcile: Reconcile
    reads: tuple[Resource, ...] = ()  # mirrored too, but their changes concern no key
    workers: int = 4
    # Called once, before the mirrors run: adds what `reconcile` looks things up by.
    add_indexes: Callable[[Context], None] = field(default=lambda _: None)
    # Called when it ends for good: gives back what `reconcile` holds beside the API.
    end: Callable[[], None] = field(default=lambda: None)


async def run_controllers(
    controllers: Iterable[Controller], kube: Kube, supervisor: Supervisor
) -> None:
    """Runs until cancelled."""
    controllers = list(controllers)
    mirrors = Mirrors(kube, supervisor.objects_of("controllers"), PARTS)
    for controller in controllers:
        for resource in _resources(controller):
            mirrors.of(resource)
    try:
        async with asyncio.TaskGroup() as tasks:
            for controller in controllers:
                name, running = controller.name, _Running(controller, kube, mirrors, supervisor)
                tasks.create_task(supervisor.keep(name, running.run), name=name)
            for mirror in mirrors:
                name = f"controllers/{mirror.resource.plural}"
                tasks.create_task(supervisor.keep(name, mirror.run), name=name)
    finally:
        for controller in controllers:
            controller.end()


def _resources(controller: Controller) -> list[Resource]:
    return [*controller.reads, *(watch.resource for watch in controller.watches)]


class _Running:
    """A controller over all of its starts: mirrors keep its callbacks and indexes."""

    def __init__(
        self, controller: Controller, kube: Kube, mirrors: Mirrors, supervisor: Supervisor
    ) -> None:
        self._controller = controller
        self._supervisor = supervisor
        self._recorder = Recorder(kube, controller.name, now)
        self._context = Context(kube, mirrors, self._recorder)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._wired = False

    async def run(self) -> None:
        controller, context = self._controller, self._context
        # A new one for each start: workers that ended held keys of the old one for ever.
        self._queue = WorkQueue()
        try:
            if self._wired:
                self._queue_all()
            else:
                self._wire()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._recorder.run(), name=f"{controller.name}-events")
                for resource in _resources(controller):
                    # No reconcile with missing objects.
                    await context.of(resource).wait_synced()
                for number in range(controller.workers):
                    tasks.create_task(self._work(), name=f"{controller.name}-{number}")
        finally:
            self._queue.close()

    def _wire(self) -> None:
        self._controller.add_indexes(self._context)
        self._wired = True
        broke = self._supervisor.objects_of(self._controller.name)
        for watch in self._controller.watches:
            self._context.of(watch.resource).on_change(self._adder(watch), broke)

    def _adder(self, watch: Watch) -> Changed:
        def changed(old: Obj | None, new: Obj | None) -> None:
            # Both, because an object that changes its owner concerns the old owner, too.
            for obj in (old, new):
                if obj is not None:
                    for key in watch.keys(obj, self._context):
                        self._queue.add(key)

        return changed

    def _queue_all(self) -> None:
        for watch in self._controller.watches:
            add = self._adder(watch)
            for obj in self._context.of(watch.resource):
                with contextlib.suppress(Exception):  # told when the mirror saw it
                    add(None, obj)

    async def _work(self) -> None:
        controller, context = self._controller, self._context
        await work_off(
            controller.name,
            self._queue,
            lambda key: controller.reconcile(key, context),
            self._tell,
        )

    def _tell(self, key: Key, error: Exception | None) -> None:
        """Keys are of the first resource that the controller watches, in all of ours."""
        resource = self._controller.watches[0].resource
        namespace, name = key
        # One that is gone has a name as well: what was noted about it must go, too.
        gone = {"kind": resource.kind, "metadata": {"namespace": namespace, "name": name}}
        obj = self._context.of(resource).get(name, namespace)
        if obj is not None or error is None:
            self._supervisor.objects_of(self._controller.name)(obj or gone, error)


async def work_off(
    name: str,
    queue: WorkQueue[K],
    reconcile: Callable[[K], Awaitable[float | None]],
    told: Callable[[K, Exception | None], None] = lambda key, error: None,
) -> None:
    """One worker: reconciles what the queue gives, until cancelled. No failure ends it.

    `told`: called with each key that breaks the reconcile, and with None when one that failed
    does so no longer."""
    loop, turns = asyncio.get_running_loop(), Turns()
    while True:
        await turns.next()  # neither a queue with keys nor a reconcile has to wait for anything
        key = await queue.take()
        began_s = loop.time()
        try:
            again_s = await reconcile(key)
            if again_s is not None:
                queue.add_after(key, again_s)
        except Conflict:
            queue.failed(key)  # the mirror will soon show the newer version
        except KubeError as error:
            delay_s = queue.failed(key)
            log.warning(
                "reconcile failed",
                extra={
                    "controller": name,
                    "key": _text(key),
                    "error": str(error),
                    "retry_s": delay_s,
                },
            )
        except Exception as error:  # a bug in one reconcile must not stop all controllers
            words = text_of(error)
            log.error(
                "reconcile broke",
                extra={"controller": name, "key": _text(key), "error": words},
                exc_info=error if queue.is_news(key, words) else None,
            )
            queue.failed(key)
            told(key, error)
        else:
            if queue.has_failed(key):
                told(key, None)
            queue.done(key, loop.time() - began_s)


def _text(key: Hashable) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
