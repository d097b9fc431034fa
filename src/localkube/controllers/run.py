"""The work loop that all controllers share: a change of an object queues keys, and workers
reconcile them. A key whose reconcile fails is tried again with exponential backoff.

A controller is a value: the resources that it watches, the keys that a change of each concerns, and
a coroutine that reconciles one key. It reads mirrors, never changes the objects in them, and writes
through the API like any other client.
"""

import asyncio
import datetime
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.events import Recorder
from kubeclient.mirror import Key, Mirror, Mirrors, key_of
from kubeclient.objects import Obj
from kubeclient.resources import Resource
from localkube.controllers.pods import controller_of
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


async def run_controllers(controllers: Iterable[Controller], kube: Kube) -> None:
    """Runs until cancelled."""
    mirrors = Mirrors(kube)
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for controller in controllers:
            recorder = Recorder(kube, controller.name, now)
            context = Context(kube, mirrors, recorder)
            queue = _wire(controller, context)
            tasks.create_task(recorder.run(), name=f"{controller.name}-events")
            for number in range(controller.workers):
                tasks.create_task(
                    _work(controller, context, queue, ready), name=f"{controller.name}-{number}"
                )
        tasks.create_task(mirrors.run(ready), name="mirrors")


def _wire(controller: Controller, context: Context) -> WorkQueue[Key]:
    queue: WorkQueue[Key] = WorkQueue()
    for resource in controller.reads:
        context.of(resource)
    for watch in controller.watches:
        mirror = context.of(watch.resource)

        # As a default argument, because a closure would see the `watch` of the last turn of the
        # loop.
        def changed(old: Obj | None, new: Obj | None, keys: KeysOf = watch.keys) -> None:
            # Both, because an object that changes its owner concerns the old owner, too.
            for obj in (old, new):
                if obj is not None:
                    for key in keys(obj, context):
                        queue.add(key)

        mirror.on_change(changed)
    controller.add_indexes(context)
    return queue


async def _work(
    controller: Controller, context: Context, queue: WorkQueue[Key], ready: asyncio.Event
) -> None:
    await ready.wait()  # until all mirrors are synced: no reconcile with missing objects
    await work_off(controller.name, queue, lambda key: controller.reconcile(key, context))


async def work_off(
    name: str, queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[float | None]]
) -> None:
    """One worker: reconciles what the queue gives, until cancelled. No failure ends it."""
    loop = asyncio.get_running_loop()
    while True:
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
        except Exception:  # a bug in one reconcile must not stop all controllers
            log.exception("reconcile broke", extra={"controller": name, "key": _text(key)})
            queue.failed(key)
        else:
            queue.done(key, loop.time() - began_s)


def _text(key: Hashable) -> str:
    return "/".join(key) if isinstance(key, tuple) else str(key)
