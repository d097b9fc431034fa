"""Garbage collection: an object is deleted when all of its owners are gone.

Owners are identified by uid, never by name: a later object of the same name owns nothing. There are
three kinds of deletion of an owner. Background: its dependents are deleted after it. Foreground:
the owner stays, with a finalizer, until the dependents that block its deletion are gone. Orphan:
the references to the owner are removed, and the dependents stay.

An owner that is not in our mirrors need not be gone: the mirror may be late. So the API server is
asked before a dependent is deleted. An owner of a kind that is not served never counts as gone,
because nobody can tell; but if its CRD is gone, so are its objects.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from kubeclient.client import Kube
from kubeclient.errors import KubeError, NotFound
from kubeclient.mirror import Changed, Mirror
from kubeclient.mirror_faults import Broke, unheard
from kubeclient.objects import Obj
from kubeclient.resources import CRDS, EVENTS, Resource
from localkube.controllers.api_resources import deletable_resources
from localkube.controllers.owner_graph import FOREGROUND, ORPHAN, Kind, Known, OwnerGraph, known_of
from localkube.controllers.run import work_off
from localkube.work_queue import WorkQueue

log = logging.getLogger(__name__)

_UNOWNED = {EVENTS.plural, "leases"}  # many objects, never owned: not worth a mirror
_RETRY_S = 1.0
_LIST_WITHIN_S = 30.0  # as in Kubernetes: a kind that cannot be listed must not stop the others
_WORKERS = 32  # many, so that the API server flushes their writes to disk together


@dataclass(frozen=True, slots=True)
class _Followed:
    resource: Resource
    listed: asyncio.Event
    task: asyncio.Task[None]


class Garbage:
    """Follows the metadata of every kind that can own or be owned."""

    def __init__(self, kube: Kube, broke: Broke = unheard) -> None:
        """`broke` is told of objects whose metadata cannot be understood."""
        self._kube = kube
        self._broke = broke
        self._kinds: dict[Kind, _Followed] = {}
        self._kinds_changed = asyncio.Event()
        self._queue: WorkQueue[str] = WorkQueue()  # uids to look at
        self._graph = OwnerGraph(self._queue.add)

    async def run(self) -> None:
        """Until cancelled."""
        crds = Mirror(self._kube, CRDS, metadata_only=True)
        crds.on_change(lambda old, new: self._kinds_changed.set())
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(crds.run(), name="garbage-crds")
                await crds.wait_synced()
                await self._follow_kinds(tasks)
                tasks.create_task(self._keep_following(tasks), name="garbage-kinds")
                # Else an owner would look free before its dependents are listed.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LIST_WITHIN_S):
                        for followed in list(self._kinds.values()):
                            await followed.listed.wait()
                for number in range(_WORKERS):
                    work = work_off("garbage-collector", self._queue, self._collect)
                    tasks.create_task(work, name=f"garbage-{number}")
        finally:
            self._queue.close()

    # -- following -----------------------------------------------------------------------------

    async def _keep_following(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._kinds_changed.wait()
            self._kinds_changed.clear()
            await self._follow_kinds(tasks)

    async def _follow_kinds(self, tasks: asyncio.TaskGroup) -> None:
        served = await self._served()
        for kind in self._kinds.keys() - served.keys():
            await self._unfollow(kind)
        for kind, resource in served.items():
            known = self._kinds.get(kind)
            if known is not None:
                if known.resource == resource:
                    continue
                known.task.cancel()  # another version is preferred now
            listed = asyncio.Event()
            task = tasks.create_task(
                self._follow(kind, resource, listed), name=f"garbage-{resource.plural}"
            )
            self._kinds[kind] = _Followed(resource, listed, task)

    async def _served(self) -> dict[Kind, Resource]:
        while True:
            try:
                found = await deletable_resources(self._kube)
            except KubeError as error:
                log.warning("the kinds could not be read", extra={"error": str(error)})
                await asyncio.sleep(_RETRY_S)
            else:
                return {(r.group, r.plural): r for r in found if r.plural not in _UNOWNED}

    async def _follow(self, kind: Kind, resource: Resource, listed: asyncio.Event) -> None:
        # Objects of such a mirror do not say what they are.
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        mirror = Mirror(
            self._kube,
            resource,
            metadata_only=True,
            broke=lambda obj, error: self._broke(obj | named, error),
        )
        mirror.on_change(self._watcher(resource))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(mirror.run(), name=f"garbage-{resource.plural}-mirror")
            await mirror.wait_synced()
            # What went while the mirror of another version was exchanged for this one.
            there = {obj["metadata"]["uid"] for obj in mirror}
            for known in self._graph.of_kind(kind):
                if known.uid not in there:
                    self._graph.gone(known)
            listed.set()

    async def _unfollow(self, kind: Kind) -> None:
        """The kind is not served any more. If its CRD is gone, so are its objects. Else nobody can
        tell, and nothing may be deleted because of it."""
        group, plural = kind
        lost = self._graph.forget
        try:
            await self._kube.get(CRDS, f"{plural}.{group}")
        except NotFound:
            lost = self._graph.gone
        except KubeError as error:
            log.warning("a CRD could not be read", extra={"error": str(error)})
        self._kinds.pop(kind).task.cancel()
        for known in self._graph.of_kind(kind):
            lost(known)

    def _watcher(self, resource: Resource) -> Changed:
        def changed(old: Obj | None, new: Obj | None) -> None:
            if old is not None and (
                new is None or old["metadata"]["uid"] != new["metadata"]["uid"]
            ):
                self._graph.gone(known_of(resource, old))
            if new is not None:
                self._graph.seen(known_of(resource, new))

        return changed

    # -- collecting ----------------------------------------------------------------------------

    async def _collect(self, uid: str) -> None:
        known = self._graph.get(uid)
        if known is None:
            return
        try:
            if not known.deleting:
                await self._collect_dependent(known)
            elif ORPHAN in known.finalizers:
                await self._orphan(known)
            elif FOREGROUND in known.finalizers and self._graph.is_free(known):
                await self._drop_finalizer(known, FOREGROUND)
        except NotFound:
            pass  # it is gone: the watch will say so

    async def _collect_dependent(self, known: Known) -> None:
        living = [o for o in known.owners if not await self._is_dead(o, known)]
        solid = [o for o in living if not self._graph.waits(o["uid"])]
        if len(solid) == len(known.owners):
            return
        if solid:
            await self._keep_owners(known, solid)
            return
        # An owner in foreground deletion waits for its dependents, so these have to wait for
        # theirs.
        waits = bool(living) and self._graph.has_dependents(known.uid)
        options = {
            "propagationPolicy": "Foreground" if waits else "Background",
            # Mirrors are late: by now another object may have the name, or this one another owner.
            "preconditions": {"uid": known.uid, "resourceVersion": known.version},
        }
        await self._kube.delete(known.resource, known.name, known.namespace, options=options)

    async def _is_dead(self, owner: Obj, dependent: Known) -> bool:
        uid = owner["uid"]
        if self._graph.get(uid) is not None:
            return False
        if not self._graph.is_dead(uid) and await self._server_lacks(owner, dependent.namespace):
            self._graph.remember_dead(uid)
        return self._graph.is_dead(uid)

    async def _server_lacks(self, owner: Obj, namespace: str) -> bool:
        group = owner["apiVersion"].rpartition("/")[0]
        for resource in (followed.resource for followed in self._kinds.values()):
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
        except NotFound as error:
            # Without a name, it is the path that is not served: the kind is changing just now.
            return bool((error.status.get("details") or {}).get("name"))
        return bool(found["metadata"]["uid"] != owner["uid"])

    async def _orphan(self, owner: Known) -> None:
        # A list, because the graph changes while this awaits.
        for dependent in list(self._graph.dependents(owner.uid)):
            left = [o for o in dependent.owners if o["uid"] != owner.uid]
            with contextlib.suppress(NotFound):
                await self._keep_owners(dependent, left)
        # Last: as long as the finalizer is there, an interrupted pass is repeated. Without it,
        # dependents that still refer to the owner would be deleted.
        await self._drop_finalizer(owner, ORPHAN)

    async def _keep_owners(self, known: Known, owners: list[Obj]) -> None:
        await self._patch(known, {"ownerReferences": owners or None})

    async def _drop_finalizer(self, known: Known, finalizer: str) -> None:
        await self._patch(known, {"finalizers": [f for f in known.finalizers if f != finalizer]})

    async def _patch(self, known: Known, metadata: Obj) -> None:
        # A patch replaces the whole list: what was added to it meanwhile must cause a conflict. The
        # next look sees the addition.
        basis = {"uid": known.uid, "resourceVersion": known.version}
        await self._kube.patch(known.path, {"metadata": {**basis, **metadata}})
