"""StorageState: claims, volumes, storage classes and attach limits, and the pods that they concern.

Pods may be read before their claims and volumes, and claims may be bound later. So it knows which
pods use which claims, and says which of them must be looked at again: thousands of pods may wait
with claims while thousands of volumes are read.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

from gpupool.contract.volumes import (
    ClaimUse,
    Storage,
    attached_volumes,
    claim_uses,
    volume_limits,
)
from gpupool.core.pods import AttachedVolume
from kubeclient.mirror import Key, key_of
from kubeclient.objects import Obj

K = TypeVar("K")


class StorageState:
    def __init__(self) -> None:
        self._claims: dict[Key, Obj] = {}
        self._volumes: dict[str, Obj] = {}
        self._classes: dict[str, Obj] = {}
        self.storage = Storage(self._claims, self._volumes, self._classes)
        self.limits: dict[str, dict[str, int]] = {}  # of attached volumes, by node and driver
        self._uses: dict[str, tuple[str, tuple[ClaimUse, ...]]] = {}  # of pods, by uid
        self._users: dict[Key, set[str]] = defaultdict(set)  # their uids, by claim

    # -- changes in the API; each returns the uids of the pods that it concerns ------------------

    def claim_changed(self, old: Obj | None, new: Obj | None) -> set[str]:
        _keep(self._claims, key_of, old, new)
        return {uid for obj in (old, new) if obj for uid in self._users.get(key_of(obj), ())}

    def volume_changed(self, old: Obj | None, new: Obj | None) -> set[str]:
        _keep(self._volumes, _name, old, new)
        found: set[str] = set()
        for volume in (old, new):
            claim = ((volume or {}).get("spec") or {}).get("claimRef") or {}
            found |= self._users.get((claim.get("namespace", ""), claim.get("name", "")), set())
        return found

    def class_changed(self, old: Obj | None, new: Obj | None) -> None:
        _keep(self._classes, _name, old, new)

    def limits_changed(self, old: Obj | None, new: Obj | None) -> str:
        """Of a CSINode. Returns the name of the node."""
        name = _name(new or old or {})
        self.limits.pop(name, None)
        limits = volume_limits(new) if new is not None else {}
        if limits:
            self.limits[name] = limits
        return name

    # -- pods ------------------------------------------------------------------------------------

    def seen(self, pod: Obj) -> tuple[AttachedVolume, ...]:
        """The pod waits or has a node. Returns the volumes that are attached where it is."""
        uid, namespace = pod["metadata"]["uid"], pod["metadata"]["namespace"]
        uses = tuple(claim_uses(pod))
        if self._uses.get(uid, (namespace, ())) != (namespace, uses):
            self.gone(uid)
        if not uses:
            return ()
        self._uses[uid] = (namespace, uses)
        for use in uses:
            self._users[namespace, use.name].add(uid)
        return self.attached(uid)

    def attached(self, uid: str) -> tuple[AttachedVolume, ...]:
        namespace, uses = self._uses.get(uid, ("", ()))
        return attached_volumes(namespace, uses, self.storage)

    def gone(self, uid: str) -> None:
        namespace, uses = self._uses.pop(uid, ("", ()))
        for use in uses:
            users = self._users.get((namespace, use.name), set())
            users.discard(uid)
            if not users:
                self._users.pop((namespace, use.name), None)


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _keep(kept: dict[K, Obj], key: Callable[[Obj], K], old: Obj | None, new: Obj | None) -> None:
    if new is not None:
        kept[key(new)] = new
    elif old is not None:
        kept.pop(key(old), None)
