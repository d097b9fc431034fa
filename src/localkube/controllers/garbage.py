"""Garbage collection: an object is deleted when all of its owners are gone.

Owners are identified by uid, never by name: a later object of the same name owns nothing. There are
three kinds of deletion of an owner. Background: its dependents are deleted after it. Foreground:
the owner stays, with a finalizer, until the dependents that block its deletion are gone. Orphan:
the references to the owner are removed, and the dependents stay.

An owner that is not in our mirrors need not be gone: the mirror may be late. So the API server is
asked before a dependent is deleted. An owner of a kind that is not served never counts as gone,
because nobody can tell.
"""

import asyncio
import itertools
import logging
from collections import OrderedDict

import msgspec

from kubeclient.client import Kube
from kubeclient.errors import Conflict, KubeError, NotFound
from kubeclient.mirror import Changed, Mirror
from kubeclient.objects import Obj
from kubeclient.resources import CRDS, EVENTS, Resource
from localkube.controllers.api_resources import deletable_resources

log = logging.getLogger(__name__)

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_UNOWNED = {EVENTS.plural, "leases"}  # many objects, never owned: not worth a mirror
_RETRY_S = 1.0
_AT_A_TIME = 32
_DEAD_REMEMBERED = 10_000  # uids; for one that was forgotten, the API server is asked again


class Known(msgspec.Struct, frozen=True, gc=False):
    """What garbage collection needs of one object."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: str
    deleting: bool
    finalizers: tuple[str, ...]
    owners: tuple[Obj, ...]

    def waits_for_dependents(self) -> bool:
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)


def _known(resource: Resource, obj: Obj) -> Known:
    metadata = obj["metadata"]
    return Known(
        resource=resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        deleting="deletionTimestamp" in metadata,
        finalizers=tuple(metadata.get("finalizers") or ()),
        owners=tuple(metadata.get("ownerReferences") or ()),
    )


class Garbage:
    """Follows the metadata of every kind that can own or be owned."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._mirrors: dict[Resource, Mirror] = {}
        self._tasks: dict[Resource, asyncio.Task[None]] = {}
        self._alive: dict[str, Known] = {}
        self._dependents: dict[str, set[str]] = {}  # owner uid -> uids
        self._dead: OrderedDict[str, None] = OrderedDict()  # uids that are known to be gone
        self._dirty: dict[str, None] = {}  # uids to look at, in order
        self._wake = asyncio.Event()
        self._kinds_changed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        crds = Mirror(self._kube, CRDS, metadata_only=True)
        crds.on_change(lambda old, new: self._kinds_changed.set())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(crds.run(), name="garbage-crds")
            await crds.wait_synced()
            await self._follow_kinds(tasks)
            tasks.create_task(self._keep_following(tasks), name="garbage-kinds")
            while True:
                await self._collect()

    async def _keep_following(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._kinds_changed.wait()
            self._kinds_changed.clear()
            await self._follow_kinds(tasks)

    async def _follow_kinds(self, tasks: asyncio.TaskGroup) -> None:
        served = {r for r in await deletable_resources(self._kube) if r.plural not in _UNOWNED}
        for resource in served - self._mirrors.keys():
            mirror = self._mirrors[resource] = Mirror(self._kube, resource, metadata_only=True)
            mirror.on_change(self._watcher(resource))
            self._tasks[resource] = tasks.create_task(
                mirror.run(), name=f"garbage-{resource.plural}"
            )
        for resource in self._mirrors.keys() - served:
            self._tasks.pop(resource).cancel()
            for obj in self._mirrors.pop(resource):
                self._gone(_known(resource, obj))
        for mirror in self._mirrors.values():
            await mirror.wait_synced()  # else an owner that is not listed yet would look gone

    def _watcher(self, resource: Resource) -> Changed:
        def changed(old: Obj | None, new: Obj | None) -> None:
            before = _known(resource, old) if old is not None else None
            after = _known(resource, new) if new is not None else None
            if before is not None and (after is None or before.uid != after.uid):
                self._gone(before)
                before = None
            if after is not None:
                self._seen(before, after)

        return changed

    def _seen(self, before: Known | None, after: Known) -> None:
        self._alive[after.uid] = after
        owners = {owner["uid"] for owner in after.owners}
        for owner in {o["uid"] for o in before.owners} - owners if before else ():
            self._dependents.get(owner, set()).discard(after.uid)
            self._look_at(owner)
        for owner in owners:
            self._dependents.setdefault(owner, set()).add(after.uid)
        if owners or after.deleting:
            self._look_at(after.uid)
        if after.deleting:
            for dependent in self._dependents.get(after.uid, ()):
                self._look_at(dependent)

    def _gone(self, known: Known) -> None:
        self._alive.pop(known.uid, None)
        self._remember_dead(known.uid)
        for owner in known.owners:
            self._dependents.get(owner["uid"], set()).discard(known.uid)
            self._look_at(owner["uid"])
        for dependent in self._dependents.pop(known.uid, ()):
            self._look_at(dependent)

    def _remember_dead(self, uid: str) -> None:
        self._dead[uid] = None
        if len(self._dead) > _DEAD_REMEMBERED:
            self._dead.popitem(last=False)

    def _look_at(self, uid: str) -> None:
        self._dirty[uid] = None
        self._wake.set()

    async def _collect(self) -> None:
        while not self._dirty:
            self._wake.clear()
            await self._wake.wait()
        # Several at a time, so that the API server flushes their writes to disk together.
        uids = list(itertools.islice(self._dirty, _AT_A_TIME))
        for uid in uids:
            del self._dirty[uid]
        await asyncio.gather(*(self._process(uid) for uid in uids))

    async def _process(self, uid: str) -> None:
        known = self._alive.get(uid)
        if known is None:
            return
        try:
            await self._collect_one(known)
        except (NotFound, Conflict):
            pass  # it is gone or has changed: if that matters, the watch queues it again
        except KubeError as error:
            log.warning("garbage not collected", extra={"uid": uid, "error": str(error)})
            asyncio.get_running_loop().call_later(_RETRY_S, self._look_at, uid)

    async def _collect_one(self, known: Known) -> None:
        if known.deleting:
            if ORPHAN in known.finalizers:
                await self._orphan(known)
            elif FOREGROUND in known.finalizers:
                await self._release_if_free(known)
        elif known.owners:
            await self._collect_dependent(known)

    async def _collect_dependent(self, known: Known) -> None:
        living = [o for o in known.owners if not await self._is_dead(o, known)]
        solid = [o for o in living if not self._waits(o["uid"])]
        if len(solid) == len(known.owners):
            return
        if solid:
            await self._keep_owners(known, solid)
            return
        # An owner in foreground deletion waits for its dependents, so these have to wait for
        # theirs.
        waits = bool(living) and bool(self._dependents.get(known.uid))
        options = {
            "propagationPolicy": "Foreground" if waits else "Background",
            # Mirrors are late: by now another object may have the name.
            "preconditions": {"uid": known.uid},
        }
        await self._kube.delete(known.resource, known.name, known.namespace, options=options)

    def _waits(self, uid: str) -> bool:
        return uid in self._alive and self._alive[uid].waits_for_dependents()

    async def _is_dead(self, owner: Obj, dependent: Known) -> bool:
        uid = owner["uid"]
        if uid in self._alive:
            return False
        if uid not in self._dead and await self._server_lacks(owner, dependent.namespace):
            self._remember_dead(uid)
        return uid in self._dead

    async def _server_lacks(self, owner: Obj, namespace: str) -> bool:
        group = owner["apiVersion"].rpartition("/")[0]
        for resource in self._mirrors:
            if (resource.group, resource.kind) == (group, owner["kind"]):
                break
        else:
            return False
        if resource.namespaced and not namespace:
            return False  # no namespace to look in: an invalid reference is no reason to delete
        try:
            found = await self._kube.get(
                resource, owner["name"], namespace if resource.namespaced else ""
            )
        except NotFound:
            return True
        return bool(found["metadata"]["uid"] != owner["uid"])

    async def _release_if_free(self, owner: Known) -> None:
        dependents = [self._alive[uid] for uid in self._dependents.get(owner.uid, ())]
        if not any(_blocks(dependent, owner.uid) for dependent in dependents):
            await self._drop_finalizer(owner, FOREGROUND)

    async def _orphan(self, owner: Known) -> None:
        for uid in list(self._dependents.get(owner.uid, ())):
            dependent = self._alive[uid]
            left = [o for o in dependent.owners if o["uid"] != owner.uid]
            await self._keep_owners(dependent, left)
        # Last: as long as the finalizer is there, an interrupted pass is repeated. Without it,
        # dependents that still refer to the owner would be deleted.
        await self._drop_finalizer(owner, ORPHAN)

    async def _keep_owners(self, known: Known, owners: list[Obj]) -> None:
        metadata = {"uid": known.uid, "ownerReferences": owners or None}
        await self._kube.patch(known.path, {"metadata": metadata})

    async def _drop_finalizer(self, known: Known, finalizer: str) -> None:
        metadata = {
            "uid": known.uid,
            # The patch replaces the whole list: a finalizer that was added meanwhile must cause a
            # conflict.
            "resourceVersion": known.version,
            "finalizers": [f for f in known.finalizers if f != finalizer],
        }
        await self._kube.patch(known.path, {"metadata": metadata})


def _blocks(dependent: Known, owner_uid: str) -> bool:
    return any(o["uid"] == owner_uid and o.get("blockOwnerDeletion") for o in dependent.owners)
