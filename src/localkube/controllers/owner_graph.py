"""Which objects own which, as garbage collection sees them. No I/O.

Objects are identified by uid. A kind is a group and a plural: an object stays the same when its
kind is served in another version.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from kubeclient.objects import Obj
from kubeclient.resources import Resource

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_DEAD_REMEMBERED = 10_000  # uids; for one that was forgotten, the API server is asked again

Kind = tuple[str, str]  # group, plural


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

    def blocks(self, owner_uid: str) -> bool:
        """Whether the deletion of the owner in the foreground has to wait for this object."""
        return any(o["uid"] == owner_uid and o.get("blockOwnerDeletion") for o in self.owners)

    @property
    def kind(self) -> Kind:
        return self.resource.group, self.resource.plural

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)


def known_of(resource: Resource, obj: Obj) -> Known:
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


class OwnerGraph:
    """`look_at` is called with every uid that a change concerns."""

    def __init__(self, look_at: Callable[[str], None]) -> None:
        self._look_at = look_at
        self._alive: dict[str, Known] = {}
        self._dependents: dict[str, set[str]] = {}  # owner uid -> uids, all of them in _alive
        self._dead: OrderedDict[str, None] = OrderedDict()  # uids that are known to be gone

    # -- what is seen --------------------------------------------------------------------------

    def seen(self, after: Known) -> None:
        before = self._alive.get(after.uid)
        self._alive[after.uid] = after
        self._dead.pop(after.uid, None)
        owners = {owner["uid"] for owner in after.owners}
        if before is not None:
            self._untie({owner["uid"] for owner in before.owners} - owners, after.uid)
        for owner in owners:
            self._dependents.setdefault(owner, set()).add(after.uid)
        if owners or after.deleting:
            self._look_at(after.uid)
        if after.deleting:
            self._look_at_dependents(after.uid)

    def gone(self, known: Known) -> None:
        self.remember_dead(known.uid)
        self.forget(known)
        self._look_at_dependents(known.uid)

    def forget(self, known: Known) -> None:
        """The object is out of sight, which does not mean that it is gone."""
        last = self._alive.pop(known.uid, known)
        self._untie({owner["uid"] for owner in last.owners}, known.uid)

    def remember_dead(self, uid: str) -> None:
        self._dead[uid] = None
        if len(self._dead) > _DEAD_REMEMBERED:
            self._dead.popitem(last=False)

    def _untie(self, owners: Iterable[str], dependent: str) -> None:
        for owner in owners:
            dependents = self._dependents.get(owner, set())
            dependents.discard(dependent)
            if not dependents:
                self._dependents.pop(owner, None)
            self._look_at(owner)

    def _look_at_dependents(self, uid: str) -> None:
        for dependent in self._dependents.get(uid, ()):
            self._look_at(dependent)

    # -- questions -----------------------------------------------------------------------------

    def get(self, uid: str) -> Known | None:
        return self._alive.get(uid)

    def of_kind(self, kind: Kind) -> list[Known]:
        return [known for known in self._alive.values() if known.kind == kind]

    def is_dead(self, uid: str) -> bool:
        return uid in self._dead

    def dependents(self, uid: str) -> Iterable[Known]:
        """Copy it before the graph may change."""
        return (self._alive[dependent] for dependent in self._dependents.get(uid, ()))

    def has_dependents(self, uid: str) -> bool:
        return uid in self._dependents

    def waits(self, uid: str) -> bool:
        """Whether it is being deleted in the foreground."""
        return uid in self._alive and self._alive[uid].waits_for_dependents()

    def is_free(self, owner: Known) -> bool:
        """Whether no dependent holds up its deletion in the foreground. A dependent that itself
        waits for the owner does not: both would wait for ever."""
        return not any(
            dependent.blocks(owner.uid) and not self._waits_for(dependent.uid, owner.uid)
            for dependent in self.dependents(owner.uid)
        )

    def _waits_for(self, uid: str, target: str) -> bool:
        """Whether the deletion of `uid` waits for `target`, perhaps through others."""
        todo, met = [uid], set[str]()
        while todo:
            current = todo.pop()
            if current == target:
                return True
            if current not in met and self.waits(current):
                met.add(current)
                todo += [d.uid for d in self.dependents(current) if d.blocks(current)]
        return False
